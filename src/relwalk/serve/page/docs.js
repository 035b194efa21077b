// The API from its own description (/openapi.json): what can be asked, with what, and how to ask it from a shell.

import { clear, el } from "/page/ui.js";

const place = document.getElementById("content");
const theme = localStorage.getItem("relwalk-theme");
if (theme) document.documentElement.dataset.theme = theme;

function kind(schema = {}, all) {
  if (schema.$ref) return kind(all[schema.$ref.split("/").pop()], all);
  if (schema.anyOf) return schema.anyOf.filter((one) => one.type !== "null").map((one) => kind(one, all)).join(" or ");
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.const !== undefined) return String(schema.const);
  const bounds = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const from = bounds.some((b) => b !== undefined) ? ` ${bounds[0] ?? "…"} to ${bounds[1] ?? "…"}` : "";
  if (schema.type === "array") return `list of ${kind(schema.items, all)}`;
  if (schema.type === "object") return Object.entries(schema.properties ?? {}).map(([name, one]) => `${name}: ${kind(one, all)}`).join(", ");
  return `${schema.type ?? "value"}${from}`;
}

function one(method, path, about, all) {
  const rows = (about.parameters ?? []).map((p) => el("tr", {}, el("td", {}, el("code", {}, p.name), p.required ? " (needed)" : ""), el("td", {}, kind(p.schema, all)),
    el("td", {}, p.description ?? p.schema?.description ?? "", p.schema?.default !== undefined && p.schema.default !== null ? ` Else ${JSON.stringify(p.schema.default)}.` : "")));
  const body = about.requestBody?.content?.["application/json"]?.schema;
  const asked = (about.parameters ?? []).filter((p) => p.required).map((p) => `${p.name}=…`).join("&");
  const url = `${location.origin}${path}${asked ? `?${asked}` : ""}`;
  const shell = method === "post" ? `curl -H 'Content-Type: application/json' -d '{…}' '${url}'` : `curl '${url}'`;
  return el("section", { class: "panel", id: about.operationId },
    el("h2", {}, el("code", {}, `${method.toUpperCase()} ${path}`)), el("p", {}, el("strong", {}, about.summary ?? ""), " ", about.description ?? ""),
    rows.length ? el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ["parameter", "kind", "meaning"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows))) : null,
    body ? el("p", { class: "small" }, "Body: ", el("code", {}, kind(body, all))) : null,
    el("p", { class: "small soft" }, el("code", {}, shell)));
}

const described = await (await fetch("/openapi.json")).json();
const all = described.components?.schemas ?? {};
const parts = Object.entries(described.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => one(method, path, about, all)));
clear(place, el("h1", {}, "API"), el("p", {}, described.info.description, " The same as ", el("a", { href: "/openapi.json" }, "OpenAPI"), "."),
  el("p", { class: "soft" }, "With a token, send the header ", el("code", {}, "Authorization: Bearer TOKEN"), ". Answers carry an ETag of the run."), parts);
document.documentElement.dataset.view = "docs";
