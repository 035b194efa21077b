// A search field with suggestions as one types: a combobox with a list below it.

import { get } from "/page/api.js";
import { count, el, link, say } from "/page/ui.js";

let made = 0;

/** Into `place`. `choose` is called with an entity; without it the entity's page opens. */
export function finder(place, { label, choose = null, placeholder = "Search entities" }) {
  const id = `options-${++made}`;
  const list = el("ul", { class: "options", id, role: "listbox", "aria-label": "Suggestions", hidden: true });
  const input = el("input", {
    type: "search", role: "combobox", "aria-label": label, "aria-expanded": "false", "aria-controls": id,
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder, maxlength: 1000,
  });
  let found = [];
  let at = -1;
  let last = null;
  let timer = 0;

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  }

  function select(place) {
    at = place;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    const option = list.children[at];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function take(entity) {
    close();
    input.value = choose ? entity.label : "";
    if (choose) choose(entity);
    else location.hash = link("entity", { name: entity.name });
  }

  function show(entities, typed) {
    found = entities;
    list.replaceChildren(
      ...entities.map((entity, i) => {
        const like = entity.match === "spelling" ? "spelled alike · " : "";
        const option = el("li", { id: `${id}-${i}`, role: "option", "aria-selected": "false" },
          el("span", { class: "name" }, entity.label),
          el("span", {}, `${like}${count(entity.facts)} facts`));
        option.addEventListener("pointerdown", (event) => { event.preventDefault(); take(entity); });
        return option;
      }),
    );
    if (!entities.length) list.append(el("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, `Nothing is called “${typed}”, or spelled like it.`));
    list.hidden = false;
    at = -1;
    input.setAttribute("aria-expanded", "true");
    say(entities.length ? `${entities.length} suggestions` : "No suggestions");
  }

  async function look() {
    const typed = input.value;
    last?.abort();
    last = new AbortController();
    if (!typed.trim()) return close();
    try {
      const answer = await get("/entities", { q: typed, limit: 8 }, last.signal);
      if (document.activeElement === input) show(answer.entities, typed);
      else found = answer.entities;
    } catch (error) {
      if (error.name !== "AbortError") { list.replaceChildren(el("li", { role: "option", "aria-selected": "false" }, error.message)); list.hidden = false; }
    }
  }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 60); });
  input.addEventListener("blur", () => setTimeout(close, 120));
  input.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return look();
      const step = event.key === "ArrowDown" ? 1 : -1;
      select((at + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (at < 0 && input.value.trim()) await look();
      if (found[Math.max(0, at)] && input.value.trim()) take(found[Math.max(0, at)]);
    } else if (event.key === "Escape") close();
  });
  place.replaceChildren(input, list);
  return input;
}
