// A question: two of head, relation and tail; the third is predicted, also by another run beside the first.

import { get, state } from "/page/api.js";
import { predicted } from "/page/entity.js";
import { finder } from "/page/search.js";
import { clear, el, link, measure, problem, sentence, waiting } from "/page/ui.js";

export async function ask(place, params) {
  const { relations } = await get("/relations");
  const given = { head: params.get("head") ?? "", relation: params.get("relation") ?? "", tail: params.get("tail") ?? "" };
  const places = { head: el("div", { class: "finder" }), tail: el("div", { class: "finder" }) };
  const which = el("select", { "aria-label": "Relation" }, el("option", { value: "" }, "? (asked for)"), relations.map((one) => el("option", { value: one.name }, one.label)));
  const only = el("input", { type: "checkbox", id: "only-new", checked: params.get("only_new") === "true" });
  const list = el("select", { "aria-label": "How many answers" }, [["k=10", "10 answers"], ["k=50", "50 answers"], ["coverage=0.8", "a list that covers 80%"], ["coverage=0.9", "a list that covers 90%"]].map(([value, words]) => el("option", { value }, words)));
  const others = state.runs.filter((run) => run.name !== state.run).map((run) => run.name);
  const beside = el("select", { "aria-label": "Another run beside this one" }, el("option", { value: "" }, "no other run"), others.map((name) => el("option", { value: name }, name)));
  const found = el("div");
  which.value = given.relation;
  const length = params.get("coverage") ? `coverage=${params.get("coverage")}` : `k=${params.get("k") ?? 10}`;
  if (![...list.options].some((one) => one.value === length)) list.append(el("option", { value: length }, length.replace("=", " ")));
  list.value = length;
  if (others.includes(params.get("beside"))) beside.value = params.get("beside");
  const form = el("form", { class: "ask panel" },
    el("div", {}, el("span", { class: "small soft" }, "Head (empty: asked for)"), places.head), el("div", {}, el("span", { class: "small soft" }, "Relation"), which),
    el("div", {}, el("span", { class: "small soft" }, "Tail (empty: asked for)"), places.tail), el("div", {}, el("span", { class: "small soft" }, "How many"), list),
    others.length ? el("div", {}, el("span", { class: "small soft" }, "Beside it"), beside) : null,
    el("div", { class: "check" }, only, el("label", { for: "only-new" }, "only what is new")), el("button", { class: "button main" }, "Ask"));
  clear(place, el("h1", {}, "Ask"), form, found);
  const fields = {};
  for (const side of ["head", "tail"]) {
    fields[side] = finder(places[side], { label: side === "head" ? "Head" : "Tail", placeholder: "?", choose: (one) => (given[side] = one.name) });
    fields[side].value = given[side];
    fields[side].addEventListener("input", () => (given[side] = fields[side].value.trim()));
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [name, value] = list.value.split("=");
    location.hash = link("ask", { head: given.head || null, relation: which.value || null, tail: given.tail || null, [name]: value, only_new: only.checked ? "true" : null, run: others.length ? state.run : null, beside: beside.value || null });
  });
  if ([given.head, given.relation, given.tail].filter(Boolean).length < 2) return;
  clear(found, waiting("Asking …"));
  const coverage = params.get("coverage");
  const asked = { head: given.head || null, relation: given.relation || null, tail: given.tail || null, only_new: params.get("only_new"), ...(coverage ? { coverage } : { k: params.get("k") ?? 10 }) };
  const runs = beside.value ? [state.run, beside.value] : [state.run];
  const answers = await Promise.all(runs.map((run) => get("/predict", { ...asked, run }).catch((error) => error)));
  clear(found, el("div", { class: runs.length > 1 ? "two" : null }, answers.map((one, i) => panel(given, one, runs[i], i, answers[1 - i]))));
}

/** The answers of one run; beside another one, each with the place that it has there. Only those of the first are judged here. */
function panel(given, answer, run, column, other) {
  if (answer instanceof Error) return el("section", { class: "panel" }, other ? el("h2", {}, run) : null, problem(answer));
  const there = other && !(other instanceof Error) ? other.answers.map((one) => one.name) : null;
  const rows = answer.answers.map((one) => {
    const made = row(given, answer, one, column === 0);
    if (there) made.append(el("p", { class: "soft small" }, there.includes(one.name) ? `place ${there.indexOf(one.name) + 1} in ${other.run}` : `not among those of ${other.run}`));
    return made;
  });
  return el("section", { class: "panel" }, el("h2", {}, other ? `${run}: ${question(answer)}` : question(answer)), el("ul", { class: "facts" }, rows),
    answer.answers.length ? null : el("p", { class: "soft" }, "No answer."), el("p", { class: "soft small" }, answer.note));
}

const question = (a) => `${a.head ?? "?"} ${a.relation ?? "?"} ${a.tail ?? "?"}${a.coverage ? ` (one of these in ${100 * a.coverage}% of cases)` : ""}`;

function row(given, answer, one, judged) {
  const side = ["head", "relation", "tail"].find((name) => answer[name] === null);
  const fact = { ...one, side, head: given.head, relation: given.relation, tail: given.tail, head_label: answer.head, relation_label: answer.relation, tail_label: answer.tail };
  fact[side] = one.name;
  fact[`${side}_label`] = one.label;
  if (one.known) return el("li", {}, sentence(fact), el("div", { class: "measure" }, measureOf(one), el("span", { class: "words" }, "known")));
  return side === "relation" || !judged ? el("li", {}, sentence(fact), measure(one)) : predicted(fact);
}

const measureOf = (one) => measure({ share: one.share ?? one.probability, confidence: null }).firstChild;
