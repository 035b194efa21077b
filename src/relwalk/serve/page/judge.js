// One missing link after the other: accept, reject, later, by button or key; kept by the service, given out as a file.

import { download, get, patiently } from "/page/api.js";
import { all, judge as tell, load, verdict } from "/page/judgements.js";
import { clear, count, el, link as address, measure, plain, problem, say, sentence, waiting } from "/page/ui.js";
import { toggleWhy } from "/page/why.js";

const KEYS = { a: "accept", r: "reject", l: "later" };

export async function judge(place, params) {
  const relation = params.get("relation") ?? "";
  const [relations] = await Promise.all([get("/relations"), load()]);
  const choice = el("select", { "aria-label": "Links of which relation" }, el("option", { value: "" }, "all relations"),
    relations.relations.map((one) => el("option", { value: one.name }, one.label)));
  choice.value = relation;
  choice.addEventListener("change", () => (location.hash = address("judge", { relation: choice.value || null })));
  const tally = el("div", { class: "tally", "aria-live": "polite" });
  const card = el("section", { class: "panel link-card" }, waiting("Looking for missing links among all questions …"));
  const context = el("div", { class: "two" });
  const list = el("section", { class: "panel", style: { marginTop: "1.2rem" } });
  clear(place, el("h1", {}, "Is it true?"), el("div", { class: "row", style: { marginBottom: ".8rem" } }, el("div", {}, choice)), tally, card, context, list);
  const { links, remarks } = await patiently("/discover", { k: 300, relation: relation || null });
  const history = [];
  let now = null;
  let put = []; // put off in this sitting, to come again at the end

  function next() {
    now = links.find((one) => verdict(one) === null) ?? put.find((one) => verdict(one) === "later") ?? null;
    put = put.filter((one) => one !== now);
    draw();
  }

  function draw() {
    count_up();
    if (!now) {
      clear(card, el("p", {}, links.length ? "All of these are judged." : "No new link is worth a look."), el("p", { class: "soft" }, "Export them below, or choose another relation above."));
      return clear(context);
    }
    const reasons = el("div");
    const why = el("button", { class: "button", type: "button", "aria-expanded": "false" }, "Why?", el("kbd", {}, "W"));
    why.addEventListener("click", () => toggleWhy(reasons, now, why));
    const button = (word, name, key, kind) => el("button", { class: `button ${kind}`, type: "button", value: word, onclick: () => say_it(word) }, name, el("kbd", {}, key));
    const undo = el("button", { class: "button", type: "button", disabled: history.length === 0, onclick: take_back }, "Undo", el("kbd", {}, "U"));
    const had = card.contains(document.activeElement);
    clear(card, sentence(now), measure(now),
      el("div", { class: "row" }, button("accept", "Accept", "A", "accept"), button("reject", "Reject", "R", "reject"), button("later", "Later", "L", ""), why, undo), reasons,
      el("p", { class: "soft small", style: { margin: "1rem auto 0" } }, remarks.join(" ")));
    if (had) card.querySelector("button").focus();
    around(now);
  }

  async function around(one) {
    clear(context);
    const cards = await Promise.all([get("/entity", { name: one.head }), get("/entity", { name: one.tail })]).catch(() => []);
    if (now !== one) return;
    clear(context, cards.map((own) => el("section", { class: "panel" },
      el("h2", {}, "Known of ", el("a", { href: address("entity", { name: own.name }) }, own.label)),
      el("ul", { class: "facts small" }, own.known.slice(0, 9).map((fact) => el("li", {}, sentence(fact, own.name)))))));
  }

  async function say_it(word) {
    const link = now;
    if (!link) return;
    try {
      await tell(link, word);
    } catch (error) {
      return clear(card, problem(error));
    }
    history.push(link);
    if (word === "later") put.push(link);
    next();
    if (now) say(`${plain(link)}: ${word}. Next: ${plain(now)}`);
  }

  async function take_back() {
    const link = history.pop();
    if (!link) return;
    await tell(link, "none");
    put = put.filter((one) => one !== link);
    now = link;
    draw();
  }

  function count_up() {
    const words = { accept: 0, reject: 0, later: 0 };
    for (const one of all()) words[one.verdict]++;
    const left = links.filter((one) => verdict(one) === null).length;
    clear(tally, el("span", {}, el("b", { id: "left" }, count(left)), " to judge"), el("span", {}, el("b", { id: "accepted" }, count(words.accept)), " accepted"),
      el("span", {}, el("b", {}, count(words.reject)), " rejected"), el("span", {}, el("b", {}, count(words.later)), " later"));
    const some = words.accept + words.reject > 0;
    const save = (form) => el("button", { class: `button ${form === "tsv" ? "main" : ""}`, type: "button", disabled: !some, onclick: () => download("/judgements/export", { format: form }, `judgements.${form}`).catch((error) => list.append(problem(error))) }, `Export ${form.toUpperCase()}`);
    clear(list, el("h2", {}, "Judged"), el("div", { class: "row" }, save("tsv"), save("jsonl")),
      el("p", { class: "soft small", style: { marginTop: ".6rem" } }, "To learn from them: ", el("code", {}, "relwalk train GRAPH --judged judgements.tsv")),
      el("ul", { class: "facts" }, all().reverse().slice(0, 200).map((one) => el("li", { class: "row" },
        el("span", { class: "small soft", style: { minWidth: "4.5rem" } }, one.verdict), sentence(one),
        el("button", { class: "tiny", type: "button", "aria-label": `Take back: ${plain(one)}`, onclick: async () => { await tell(one, "none"); next(); } }, "take back")))));
  }

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
    const key = event.key.toLowerCase();
    if (KEYS[key]) say_it(KEYS[key]);
    else if (key === "u") take_back();
    else if (key === "w") card.querySelector('button[aria-expanded]')?.click();
    else return;
    event.preventDefault();
  };
  const look_again = async () => {
    if (document.visibilityState === "visible") { await load().catch(() => {}); if (now && verdict(now) !== null && verdict(now) !== "later") next(); else count_up(); }
  };
  document.addEventListener("keydown", keys);
  document.addEventListener("visibilitychange", look_again);
  window.addEventListener("focus", look_again);
  next();
  return () => {
    document.removeEventListener("keydown", keys);
    document.removeEventListener("visibilitychange", look_again);
    window.removeEventListener("focus", look_again);
  };
}
