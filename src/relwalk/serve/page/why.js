// Why a link is predicted: the facts it rests on, the test by taking them away, and the ways that lead there.

import { patiently } from "/page/api.js";
import { bar, clear, el, percent, problem, sentence, waiting } from "/page/ui.js";

/** Into `place`, or out of it when it is there. */
export async function toggleWhy(place, link, button) {
  const open = place.childElementCount > 0;
  button?.setAttribute("aria-expanded", String(!open));
  if (open) return clear(place);
  clear(place, waiting("Learning its two entities anew, without some of their facts …"));
  const asked = { head: link.head, relation: link.relation, tail: link.tail, side: link.side ?? link.asked ?? "tail" };
  try {
    clear(place, drawn(await patiently("/why", asked)));
  } catch (error) {
    clear(place, problem(error));
  }
}

function drawn(why) {
  return el("div", { class: "why" }, el("h3", {}, "Known facts that support it most"), supported(why), checked(why), led(why));
}

function supported(why) {
  if (why.absent) return el("p", { class: "soft" }, why.absent);
  return el("ul", { class: "facts" }, why.facts.map((fact) => el("li", { class: fact.taken ? "taken" : "" }, sentence(fact))));
}

function checked(why) {
  const { all, without, control } = why.check;
  if (!all || !without) return null;
  const facts = why.taken === 1 ? "the first fact" : `the first ${why.taken} facts`;
  const rows = [["with all facts", all], [`without ${facts}`, without], [`without ${why.taken} other${why.taken === 1 ? "" : "s"}`, control]];
  return el("div", {},
    el("h3", {}, "Tested: its entities learned anew"),
    el("dl", { class: "checks" }, rows.filter(([, one]) => one).flatMap(([words, one]) => [
      el("dt", {}, words),
      el("dd", {}, bar(one.share, `share ${percent(one.share)}`)),
      el("dd", {}, `${percent(one.share)}, place ${one.place.toLocaleString("en")}`),
    ])));
}

function led(why) {
  if (!why.ways.length) return null;
  return el("div", {},
    el("h3", {}, "Ways that lead there"),
    el("ul", { class: "facts" }, why.ways.map((way) => el("li", {},
      el("div", { class: "steps" }, way.steps.map((step, i) => [i ? el("span", { class: "soft" }, "and ") : null, sentence(step)]).flat()),
      el("div", { class: "small soft" }, `${way.rule}: so linked are also linked by ${why.relation_label} in ${percent(way.holds)} of ${way.pairs.toLocaleString("en")} cases`)))));
}
