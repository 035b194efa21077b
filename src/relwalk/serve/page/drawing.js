// The neighbourhood as a drawing: known edges solid, predicted ones dashed; a click on a node brings what is around it.

import { get } from "/page/api.js";
import { el, link, plain, problem, say } from "/page/ui.js";

const MOST = 140; // nodes
const W = 1000;
const H = 520;

/** Into `place`, around an entity; returns how to end it. */
export async function drawing(place, name) {
  const view = { x: 0, y: 0, w: W, h: H };
  const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": `What is around ${name}: nodes can be opened with Enter` });
  const layer = { edges: el("g"), labels: el("g"), nodes: el("g") };
  const about = el("p", { class: "small soft", role: "status", style: { marginTop: ".5rem" } });
  svg.append(layer.edges, layer.labels, layer.nodes);
  const nodes = new Map();
  const edges = new Map();
  let frame = 0;
  let heat = 0;

  function add(found, from) {
    const start = nodes.get(from) ?? { x: W / 2, y: H / 2 };
    found.nodes.forEach((one, i) => {
      if (nodes.has(one.name) || nodes.size >= MOST) return;
      const angle = i * 2.399;
      const far = one.name === from ? 0 : 60 + 4 * i;
      nodes.set(one.name, { ...one, x: start.x + far * Math.cos(angle), y: start.y + far * Math.sin(angle), vx: 0, vy: 0 });
    });
    for (const edge of found.edges) {
      const key = JSON.stringify([edge.head, edge.relation, edge.tail]);
      if (nodes.has(edge.head) && nodes.has(edge.tail) && edge.head !== edge.tail && !edges.has(key)) edges.set(key, { ...edge });
    }
    draw();
    heat = 1;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      while (heat > 0.02) step();
      move();
      if (!chosen) fit();
      svg.dataset.still = "yes";
    } else if (!frame) frame = requestAnimationFrame(tick);
  }

  async function expand(node) {
    if (node.open) return;
    node.open = true;
    node.group?.classList.add("open");
    try {
      const before = nodes.size;
      add(await get("/neighbourhood", { name: node.name, known: 14, predicted: 5 }), node.name);
      const words = `${node.label}: ${nodes.size - before} more entities drawn`;
      about.replaceChildren(words, ". ", el("a", { href: link("entity", { name: node.name }) }, `Open the card of ${node.label}`));
      say(words);
    } catch (error) {
      about.replaceChildren(problem(error));
    }
  }

  function draw() {
    layer.edges.replaceChildren(...[...edges.values()].map((edge) => {
      edge.line = el("line", { class: edge.known ? "known" : "new" }, el("title", {}, `${plain(edge)} (${edge.known ? "known" : "predicted"})`));
      return edge.line;
    }));
    layer.labels.replaceChildren(...[...edges.values()].map((edge) => (edge.words = el("text", { class: "edge-label", visibility: "hidden" }, edge.relation_label))));
    layer.nodes.replaceChildren(...[...nodes.values()].map((node) => (node.group = drawNode(node))));
  }

  function drawNode(node) {
    const short = node.label.length > 22 ? `${node.label.slice(0, 21)}…` : node.label;
    const size = 6 + Math.min(10, 2 * Math.log2(1 + node.facts));
    const classes = ["node", node.name === name ? "centre" : "", node.open ? "open" : ""].join(" ");
    const group = el("g", { class: classes, tabindex: 0, role: "button", "aria-label": `${node.label}, ${node.facts} facts: show what is around it`, "data-name": node.name },
      el("circle", { r: size }), el("text", { y: -size - 5 }, short), el("title", {}, `${node.label} (click: what is around it; double click: its card)`));
    group.addEventListener("click", () => { if (!moved) expand(node); });
    group.addEventListener("dblclick", () => (location.hash = link("entity", { name: node.name })));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); expand(node); }
    });
    for (const [kind, on] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) group.addEventListener(kind, () => light(node, on));
    return group;
  }

  function light(node, on) {
    for (const edge of edges.values()) {
      const own = edge.head === node.name || edge.tail === node.name;
      edge.line.classList.toggle("dim", on && !own);
      edge.words.setAttribute("visibility", on && own ? "visible" : "hidden");
    }
  }

  function step() {
    const all = [...nodes.values()];
    for (let i = 0; i < all.length; i++) {
      const a = all[i];
      a.vx += (W / 2 - a.x) * 0.004 * heat;
      a.vy += (H / 2 - a.y) * 0.008 * heat;
      for (let j = i + 1; j < all.length; j++) {
        const b = all[j];
        const dx = a.x - b.x || 0.1 * (i - j);
        const dy = a.y - b.y || 0.1;
        const push = (2600 * heat) / Math.max(60, dx * dx + dy * dy);
        const d = Math.hypot(dx, dy);
        a.vx += (dx / d) * push; a.vy += (dy / d) * push;
        b.vx -= (dx / d) * push; b.vy -= (dy / d) * push;
      }
    }
    for (const edge of edges.values()) {
      const a = nodes.get(edge.head);
      const b = nodes.get(edge.tail);
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      const d = Math.hypot(dx, dy) || 1;
      const pull = (d - 115) * 0.03 * heat;
      a.vx += (dx / d) * pull; a.vy += (dy / d) * pull;
      b.vx -= (dx / d) * pull; b.vy -= (dy / d) * pull;
    }
    for (const node of all) {
      if (node === held) { node.vx = node.vy = 0; continue; }
      node.vx *= 0.72; node.vy *= 0.72;
      node.x += Math.max(-18, Math.min(18, node.vx));
      node.y += Math.max(-18, Math.min(18, node.vy));
    }
    heat *= 0.985;
  }

  function move() {
    for (const { line, words, head, tail } of edges.values()) {
      const a = nodes.get(head);
      const b = nodes.get(tail);
      for (const [key, value] of [["x1", a.x], ["y1", a.y], ["x2", b.x], ["y2", b.y]]) line.setAttribute(key, value.toFixed(1));
      words.setAttribute("x", ((a.x + b.x) / 2).toFixed(1));
      words.setAttribute("y", ((a.y + b.y) / 2).toFixed(1));
    }
    for (const node of nodes.values()) node.group.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
  }

  /** All of it in sight, until a person chooses another view. */
  function fit() {
    const all = [...nodes.values()];
    const span = (values) => [Math.min(...values), Math.max(...values)];
    const [left, right] = span(all.map((node) => node.x));
    const [top, bottom] = span(all.map((node) => node.y));
    const ratio = svg.clientHeight / Math.max(1, svg.clientWidth) || H / W;
    const w = Math.max(svg.clientWidth < 600 ? 330 : 560, right - left + 150, (bottom - top + 90) / ratio);
    const h = w * ratio;
    Object.assign(view, { x: (left + right - w) / 2, y: (top + bottom - h) / 2, w, h });
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  }

  function tick() {
    step();
    step();
    move();
    if (!chosen) fit();
    frame = heat > 0.02 ? requestAnimationFrame(tick) : 0;
    if (!frame) svg.dataset.still = "yes";
  }

  let held = null;
  let chosen = false; // a view of one's own
  let grip = null;
  let moved = false;
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = Math.min(box.width / view.w, box.height / view.h);
    return { x: view.x + view.w / 2 + (event.clientX - box.left - box.width / 2) / scale, y: view.y + view.h / 2 + (event.clientY - box.top - box.height / 2) / scale };
  };
  svg.addEventListener("pointerdown", (event) => {
    const name = event.target.closest(".node")?.dataset.name;
    held = name ? nodes.get(name) : null;
    grip = { ...at(event), left: event.clientX, top: event.clientY };
    moved = false;
  });
  svg.addEventListener("pointermove", (event) => {
    if (!grip) return;
    if (Math.hypot(event.clientX - grip.left, event.clientY - grip.top) > 4) moved = true;
    if (!moved) return;
    const now = at(event);
    if (held) { held.x = now.x; held.y = now.y; heat = Math.max(heat, 0.2); if (!frame) frame = requestAnimationFrame(tick); }
    else zoom(1, grip.x - now.x, grip.y - now.y);
  });
  for (const kind of ["pointerup", "pointerleave", "pointercancel"]) svg.addEventListener(kind, () => { held = grip = null; });

  function zoom(by, dx = 0, dy = 0) {
    chosen = true;
    const w = Math.max(200, Math.min(4000, view.w * by));
    const h = (w * view.h) / view.w;
    Object.assign(view, { x: view.x + dx + (view.w - w) / 2, y: view.y + dy + (view.h - h) / 2, w, h });
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  }

  const legend = (words, dashed) => el("li", {}, el("svg", { width: 34, height: 10, "aria-hidden": "true", style: { width: "34px", height: "10px", display: "inline", border: "0" } },
    el("line", { x1: 1, y1: 5, x2: 33, y2: 5, class: dashed ? "new" : "known" })), words);
  place.replaceChildren(svg,
    el("div", { class: "over" },
      el("button", { class: "tiny", type: "button", "aria-label": "Closer", onclick: () => zoom(0.8) }, "+"),
      el("button", { class: "tiny", type: "button", "aria-label": "Farther", onclick: () => zoom(1.25) }, "−")),
    el("ul", { class: "legend" }, legend("known", false), legend("predicted", true), el("li", {}, "click a node for what is around it, twice for its card")), about);
  try {
    const first = await get("/neighbourhood", { name, known: 22, predicted: 8 });
    add(first, first.centre);
    nodes.get(first.centre).open = true;
    nodes.get(first.centre).group.classList.add("open");
  } catch (error) {
    about.replaceChildren(problem(error));
  }
  return () => cancelAnimationFrame(frame);
}
