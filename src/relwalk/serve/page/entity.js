// An entity's card: known and predicted facts side by side, what is around it, and who is like it.

import { get } from "/page/api.js";
import { buttons } from "/page/judgements.js";
import { drawing } from "/page/drawing.js";
import { clear, count, el, link, measure, plain, problem, sentence } from "/page/ui.js";
import { toggleWhy } from "/page/why.js";

const AT_FIRST = 12; // predicted facts

export async function entity(place, params) {
  const card = await get("/entity", { name: params.get("name") ?? "" });
  const around = el("div", { class: "drawing" });
  clear(place,
    el("h1", {}, card.label),
    el("p", { class: "soft" }, card.name !== card.label ? el("code", {}, card.name) : null, card.name !== card.label ? " · " : null,
      `${count(card.facts)} facts`, card.by_split.valid + card.by_split.test ? `, ${count(card.by_split.valid + card.by_split.test)} of them held out of training` : ""),
    el("div", { class: "two" }, knownPanel(card), newPanel(card)),
    el("section", { class: "panel", style: { marginTop: "1.2rem" } }, el("h2", {}, "Around it"), around),
    el("section", { class: "panel" }, el("h2", {}, "Entities like it"),
      el("ul", { class: "chips" }, card.nearest.map((one) => el("li", {},
        el("a", { class: "chip", href: link("entity", { name: one.name }) }, one.label, " ", el("small", {}, one.cosine.toFixed(2)))))),
      el("p", {}, el("a", { href: link("map", { name: card.name }) }, "Show it on the map"), " · ",
        el("a", { href: link("ask", { head: card.name }) }, "Ask a question about it"))));
  const drawn = drawing(around, card.name);
  return () => drawn.then((end) => end());
}

function knownPanel(card) {
  const groups = new Map();
  for (const fact of card.known) {
    const key = `${fact.side} ${fact.relation}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(fact);
  }
  const parts = card.roles.map((role) => {
    const facts = groups.get(`${role.side} ${role.relation}`) ?? [];
    const other = (fact) => (role.side === "tail" ? [fact.tail, fact.tail_label] : [fact.head, fact.head_label]);
    const rest = role.facts - facts.length;
    return el("div", {},
      el("h3", {}, role.side === "tail" ? `${card.label} ${role.label} …` : `… ${role.label} ${card.label}`, " ", el("small", { class: "soft" }, count(role.facts))),
      el("ul", { class: "chips" }, facts.map((fact) => {
        const [name, label] = other(fact);
        return el("li", {}, el("a", { class: "chip", href: link("entity", { name }), "aria-label": plain(fact) }, label));
      }), rest > 0 ? el("li", { class: "soft small" }, `and ${count(rest)} more`) : null));
  });
  return el("section", { class: "panel" }, el("h2", {}, "Known"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Known facts" }, parts.length ? parts : el("p", { class: "soft" }, "Nothing yet.")));
}

function newPanel(card) {
  const list = el("ul", { class: "facts" });
  const more = el("button", { class: "button", type: "button" }, "Show more");
  const show = (from, to) => list.append(...card.new.slice(from, to).map((fact) => predicted(fact, card.name)));
  show(0, AT_FIRST);
  more.addEventListener("click", () => { show(AT_FIRST, card.new.length); more.remove(); });
  return el("section", { class: "panel" }, el("h2", {}, "Predicted"),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Predicted facts" },
      card.new.length ? list : el("p", { class: "soft" }, "Nothing: train has no fact of it to begin with."),
      card.new.length > AT_FIRST ? more : null),
    el("p", { class: "soft small", style: { marginTop: ".8rem" } }, card.note));
}

/** A predicted fact with its confidence, to be judged and explained. */
export function predicted(fact, own = null) {
  const reasons = el("div");
  const failed = (error) => clear(reasons, problem(error));
  const why = el("button", { class: "tiny", type: "button", "aria-expanded": "false", "aria-label": `Why ${plain(fact)}?` }, "Why?");
  why.addEventListener("click", () => toggleWhy(reasons, fact, why));
  return el("li", {}, sentence(fact, own), measure(fact, el("span", { class: "row tools" }, buttons(fact, failed), why)), reasons);
}
