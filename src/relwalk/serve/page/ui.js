// Elements from data. Text is always set as text: no name can become markup.

/** An element: `props` are attributes, "on…" listeners, `style` an object; children are elements or words. */
export function el(tag, props = {}, ...children) {
  const space = { svg: 1, g: 1, line: 1, circle: 1, text: 1, title: 1, path: 1, rect: 1 }[tag];
  const made = space ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function clear(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
  return node;
}

export const percent = (p) => (p >= 0.1 ? `${(100 * p).toFixed(0)}%` : p >= 0.01 ? `${(100 * p).toFixed(1)}%` : `${(100 * p).toPrecision(1)}%`);
export const count = (n) => n.toLocaleString("en");

/** A confidence in words: the chance that a new link is a fact, which is a lower bound. */
export function inWords(p) {
  if (p >= 0.5) return "probably true";
  if (p >= 0.2) return "quite possible";
  if (p >= 0.05) return "possible";
  if (p >= 0.01) return "doubtful";
  return "unlikely";
}

/** Bar, number and words of a prediction; by share where a run has no confidences. */
export function measure(found, tools = null) {
  const sure = found.confidence !== null && found.confidence !== undefined;
  const p = sure ? found.confidence : found.share ?? found.probability ?? 0;
  const words = sure ? `${percent(p)} · ${inWords(p)}` : `share ${percent(p)}`;
  const about = sure ? "Chance that it is a fact, a lower bound" : "Share among all answers";
  return el("div", { class: "measure" }, bar(p, `${about}: ${words}`), el("span", { class: "words" }, words), tools ?? "");
}

export function bar(p, words) {
  const inner = el("i", { style: { width: `${Math.max(0, Math.min(1, p)) * 100}%` } });
  return el("span", { class: "meter", role: "img", "aria-label": words, title: words }, inner);
}

export function link(view, params) {
  const words = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== null && value !== undefined));
  return `#/${view}?${words}`;
}

/** A triple as a sentence with links; `own` is the entity whose page this is. */
export function sentence(fact, own = null) {
  const entity = (name, label) =>
    name === own ? el("span", { class: "own" }, label) : el("a", { href: link("entity", { name }) }, label);
  return el(
    "span",
    { class: "fact" },
    entity(fact.head, fact.head_label),
    el("a", { class: "relation", href: link("relation", { name: fact.relation }) }, fact.relation_label),
    entity(fact.tail, fact.tail_label),
  );
}

export const plain = (fact) => `${fact.head_label} ${fact.relation_label} ${fact.tail_label}`;
export const waiting = (words) => el("p", { class: "waiting" }, words);

/** Tell a screen reader. */
export function say(words) {
  document.getElementById("said").textContent = words;
}

/** What went wrong, its cure, and the names that may have been meant. */
export function problem(error, view = "entity") {
  const near = (error.nearest ?? []).map((name) => el("li", {}, el("a", { class: "chip", href: link(view, { name }) }, name)));
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("p", {}, el("strong", {}, error.title ?? "Failed"), " ", error.message),
    near.length ? el("ul", { class: "chips" }, near) : null,
    el("button", { class: "button", type: "button", onclick: () => window.dispatchEvent(new HashChangeEvent("hashchange")) }, "Try again"),
  );
}
