// Which view the address asks for. Everything that can be seen has an address of its own.

import { Problem, get, onToken, state } from "/page/api.js";
import { finder } from "/page/search.js";
import { clear, el, problem, waiting } from "/page/ui.js";
import { load } from "/page/judgements.js";
import { home } from "/page/home.js";
import { entity } from "/page/entity.js";
import { relation, relations } from "/page/relation.js";
import { judge } from "/page/judge.js";
import { map } from "/page/map.js";
import { ask } from "/page/ask.js";

const VIEWS = { "": home, entity, relation, relations, judge, map, ask };
const content = document.getElementById("content");
let leave = () => {};
let shown = 0;

function asked() {
  const [, view, words] = /^#\/([^?]*)\??(.*)$/.exec(location.hash) ?? [null, "", ""];
  return { view, params: new URLSearchParams(words) };
}

async function show() {
  const { view, params } = asked();
  if (location.hash === "#content") return;
  leave();
  leave = () => {};
  const mine = ++shown;
  if (params.get("run") && state.runs.some((run) => run.name === params.get("run"))) choose(params.get("run"));
  mark(view);
  const place = el("div", {}, waiting("Loading …"));
  clear(content, place);
  try {
    const left = await (VIEWS[view] ?? nowhere)(place, params);
    if (mine === shown) leave = left ?? leave;
    else left?.();
  } catch (error) {
    if (mine === shown) clear(place, problem(error, view === "relation" ? "relation" : "entity"));
    if (!(error instanceof Problem)) throw error;
  }
  if (mine !== shown) return;
  const title = place.querySelector("h1")?.textContent;
  document.title = title ? `${title} · relwalk` : "relwalk";
  document.documentElement.dataset.view = view || "start";
}

async function nowhere(place) {
  clear(place, el("h1", {}, "Nothing is here"), el("p", {}, el("a", { href: "#/" }, "To the start")));
}

function mark(view) {
  const own = { entity: "", relation: "relations" }[view] ?? view;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === `#/${own}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function choose(name) {
  state.run = name;
  document.getElementById("run").value = name;
}

function theme() {
  const now = localStorage.getItem("relwalk-theme");
  if (now) document.documentElement.dataset.theme = now;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
    localStorage.setItem("relwalk-theme", document.documentElement.dataset.theme);
    window.dispatchEvent(new Event("themechange"));
  });
}

/** The token, from the part of the address that no request sends, or asked for. */
function tokenFrom(wrong) {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (given && !wrong) {
    history.replaceState(null, "", "/");
    return Promise.resolve(decodeURIComponent(given));
  }
  return new Promise((done) => {
    const input = el("input", { type: "password", id: "token", autocomplete: "off", "aria-label": "Token" });
    const form = el("form", { class: "panel" }, el("h1", {}, "This service asks for a token"),
      el("p", { class: "soft" }, wrong ? "That was not it." : "It was chosen with --token when the service was started."),
      el("div", { class: "row" }, input, el("button", { class: "button main" }, "Go on")));
    form.addEventListener("submit", (event) => { event.preventDefault(); if (input.value) done(input.value); });
    clear(content, form);
    input.focus();
  });
}

async function begin() {
  theme();
  onToken(tokenFrom);
  document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); content.focus(); });
  clear(content, waiting("Loading …"));
  try {
    state.runs = (await get("/runs")).runs;
  } catch (error) {
    clear(content, problem(error));
    addEventListener("hashchange", () => location.reload(), { once: true });
    return;
  }
  const select = document.getElementById("run");
  select.append(...state.runs.map((run) => el("option", { value: run.name }, run.name)));
  choose(state.runs[0].name);
  document.getElementById("run-label").hidden = state.runs.length < 2;
  select.addEventListener("change", () => {
    choose(select.value);
    const { view, params } = asked();
    params.set("run", select.value);
    location.hash = `#/${view}?${params}`;
  });
  finder(document.getElementById("finder"), { label: "Search entities" });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) {
      event.preventDefault();
      document.querySelector('main input[type="search"], #finder input').focus();
    }
  });
  await load().catch(() => {});
  addEventListener("hashchange", async () => { await show(); scrollTo(0, 0); });
  await show();
}

begin();
