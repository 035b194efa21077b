// The start: a search, what is missing, and where to begin.

import { get, patiently, state } from "/page/api.js";
import { finder } from "/page/search.js";
import { clear, count, el, link, measure, problem, sentence, waiting } from "/page/ui.js";

export async function home(place) {
  const run = state.runs.find((one) => one.name === state.run);
  const field = el("div", { class: "finder" });
  const missing = el("div", {}, waiting(`Looking for missing links among all questions about ${run.graph} …`));
  const facts = run.triples.train + run.triples.valid + run.triples.test;
  const mrr = run.valid_mrr ? `, valid MRR ${run.valid_mrr.toFixed(3)}` : "";
  const known = el("ul", { class: "chips" });
  const kinds = el("ul", { class: "chips" });
  clear(place,
    el("section", { class: "hero" },
      el("h1", {}, run.graph),
      el("p", { class: "soft" }, `${count(run.entities)} entities, ${count(run.relations)} relations, ${count(facts)} facts, learned by ${run.model}${mrr}`,
        run.state.status === "finished" ? "" : ` (training is ${run.state.status})`),
      field),
    el("div", { class: "two" },
      el("section", { class: "panel" },
        el("h2", {}, "What it seems to lack"),
        missing,
        el("p", { style: { marginTop: "1rem" } }, el("a", { class: "button main", href: "#/judge" }, "Judge missing links"))),
      el("section", { class: "panel" },
        el("h2", {}, "Where to begin"),
        el("h3", {}, "Well-connected entities"), known,
        el("h3", {}, "Relations"), kinds,
        el("p", {}, el("a", { href: "#/map" }, "The map of all entities")))));
  finder(field, { label: "Search entities, large", placeholder: "Whom or what are you looking for?" });
  const first = get("/entities", { q: "", limit: 12 });
  const second = get("/relations");
  clear(known, (await first).entities.map((one) => chip("entity", one)));
  clear(kinds, (await second).relations.slice(0, 14).map((one) => chip("relation", one)));
  patiently("/discover", { k: 100 })
    .then(({ links, remarks }) =>
      clear(missing,
        links.length
          ? el("ul", { class: "facts" }, links.slice(0, 6).map((one) => el("li", {}, sentence(one), measure(one))))
          : el("p", { class: "soft" }, "Nothing: no new link is worth a look."),
        el("p", { class: "soft small" }, remarks.join(" "))))
    .catch((error) => clear(missing, problem(error)));
}

function chip(view, one) {
  return el("li", {}, el("a", { class: "chip", href: link(view, { name: one.name }) }, one.label, " ", el("small", {}, count(one.facts))));
}
