// Relations: all of them, and one: what it links, how well it is learned, its matrix and its kin.

import { get, patiently, picture } from "/page/api.js";
import { clear, count, el, link, percent, sentence } from "/page/ui.js";

export async function relations(place) {
  const found = (await get("/relations")).relations;
  clear(place, el("h1", {}, "Relations"), el("div", { class: "panel wide" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Relation"), el("th", { scope: "col", class: "n" }, "Facts"), el("th", { scope: "col" }, "Cardinality"), el("th", { scope: "col" }, "Missing links"))),
    el("tbody", {}, found.map((one) => el("tr", {}, el("td", {}, el("a", { href: link("relation", { name: one.name }) }, one.label)), el("td", { class: "n" }, count(one.facts)),
      el("td", {}, one.cardinality), el("td", {}, el("a", { href: link("judge", { relation: one.name }), "aria-label": `Judge missing links of ${one.label}` }, "judge"))))))));
}

export async function relation(place, params) {
  const card = await patiently("/relation", { name: params.get("name") ?? "" });
  const facts = card.facts.train + card.facts.valid + card.facts.test;
  const numbers = [["facts", count(facts)], ["cardinality", card.cardinality], ["heads", count(card.heads)], ["tails", count(card.tails)],
    ["tails of a head", card.tails_per_head.toFixed(1)], ["heads of a tail", card.heads_per_tail.toFixed(1)]];
  clear(place, el("h1", {}, card.label), card.name !== card.label ? el("p", {}, el("code", {}, card.name)) : null,
    el("dl", { class: "numbers" }, numbers.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("p", {}, el("a", { class: "button main", href: link("judge", { relation: card.name }) }, "Judge its missing links")),
    el("div", { class: "two" },
      el("section", { class: "panel" }, el("h2", {}, "How well it is learned"), accuracy(card.accuracy)),
      el("section", { class: "panel" }, el("h2", {}, "Its kin"), partners(card.partners))),
    el("section", { class: "panel", style: { marginTop: "1.2rem" } }, el("h2", {}, "Its matrix"), await matrix(card)),
    el("section", { class: "panel" }, el("h2", {}, "Examples"), el("ul", { class: "facts" }, card.examples.map((fact) => el("li", {}, sentence(fact))))));
}

function accuracy(found) {
  if (found.absent) return el("p", { class: "soft" }, found.absent);
  const row = (name) => el("tr", {}, el("th", { scope: "row" }, name), ["mrr", "hits@1", "hits@3", "hits@10"].map((key) => el("td", { class: "n" }, found[name][key].toFixed(3))));
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "asked"), ["MRR", "H@1", "H@3", "H@10"].map((name) => el("th", { scope: "col", class: "n" }, name)))),
    el("tbody", {}, row("head"), row("tail"), row("both"))), el("p", { class: "soft small", style: { marginTop: ".6rem" } }, `${count(found.triples)} triples: ${found.protocol}`));
}

function partners(found) {
  if (found.absent) return el("p", { class: "soft" }, found.absent);
  const kinds = ["alike", "inverse", "composed"].filter((kind) => found[kind].length);
  if (!kinds.length) return el("p", { class: "soft" }, `None: no other relation's matrix is alike, inverse or composed with a cosine above ${found.threshold}.`);
  return kinds.map((kind) => el("div", {}, el("h3", {}, kind), el("ul", { class: "facts small" }, found[kind].slice(0, 8).map((one) => el("li", {}, one.words)))));
}

async function matrix(card) {
  const found = card.matrix;
  if (found.absent) return el("p", { class: "soft" }, found.absent);
  const image = el("img", { alt: `Heat map of the matrix M of ${card.label}`, src: await picture("/relation/matrix", { name: card.name, which: "M" }) });
  const facts = [["from orthogonal", found.defect_m.toExponential(1)], ["asymmetry", found.asymmetry.toFixed(2)], ["from identity", found.from_identity.toFixed(2)], ["from its own inverse", found.from_involution.toFixed(2)]];
  return el("div", { class: "pictures" },
    el("figure", {}, image, el("figcaption", {}, "M: one colour for positive entries, another for negative ones")),
    el("figure", {}, circle(found.spectrum.M.angles, card.label), el("figcaption", {}, "Eigenvalues of M by their angle: at the right +1, at the left −1")),
    el("dl", { class: "numbers" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}

function circle(angles, label) {
  const points = angles.flatMap((degrees) => [degrees, -degrees]).map((degrees) => {
    const a = (degrees * Math.PI) / 180;
    return el("circle", { cx: 100 + 80 * Math.cos(a), cy: 100 - 80 * Math.sin(a), r: 3, fill: "var(--accent)", opacity: 0.55 });
  });
  const near = angles.filter((a) => a < 30).length / angles.length;
  return el("svg", { viewBox: "0 0 200 200", role: "img", "aria-label": `Eigenvalues of ${label} on the unit circle, ${percent(near)} of them within 30 degrees of 1` },
    el("circle", { cx: 100, cy: 100, r: 80, fill: "none", stroke: "var(--line)" }), el("line", { x1: 10, y1: 100, x2: 190, y2: 100, stroke: "var(--line)" }), points);
}
