// What was said of links, as the service keeps it: the same in every tab.

import { get, post } from "/page/api.js";
import { el, plain, say } from "/page/ui.js";

const WORDS = { accept: "accepted", reject: "rejected", later: "put off", none: "taken back" };
const key = (link) => JSON.stringify([link.head, link.relation, link.tail]);
let said = new Map();

export async function load() {
  const { judgements } = await get("/judgements");
  said = new Map(judgements.map((one) => [key(one), one]));
  return said;
}

export const verdict = (link) => said.get(key(link))?.verdict ?? null;
export const all = () => [...said.values()];

export async function judge(link, word) {
  await post("/judgements", { head: link.head, relation: link.relation, tail: link.tail, verdict: word });
  if (word === "none") said.delete(key(link));
  else said.set(key(link), { ...link, verdict: word });
  say(`${plain(link)}: ${WORDS[word]}`);
}

/** Three small buttons beside a predicted fact; a pressed one, pressed again, takes its word back. */
export function buttons(link, failed) {
  const signs = [["accept", "✓", "Accept"], ["reject", "✗", "Reject"], ["later", "…", "Later"]];
  const row = el("span", { class: "row tools", role: "group", "aria-label": `Judge ${plain(link)}` });
  const drawn = () =>
    row.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(verdict(link) === b.value)));
  for (const [word, sign, name] of signs) {
    const press = async () => {
      try {
        await judge(link, verdict(link) === word ? "none" : word);
        drawn();
      } catch (error) {
        failed(error);
      }
    };
    row.append(el("button", { type: "button", class: `tiny ${word}`, value: word, title: name, "aria-label": name, onclick: press }, sign));
  }
  drawn();
  return row;
}
