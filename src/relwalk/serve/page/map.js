// The map of all entities on a canvas: near each other are those that the model holds for alike.

import { bytes, get, post } from "/page/api.js";
import { finder } from "/page/search.js";
import { clear, count, el, link, problem, say } from "/page/ui.js";

const CELLS = 128; // of the grid that finds the point below the pointer
const ROLES = 8;

export async function map(place, params) {
  const stage = el("div");
  const life = { ended: false, leave: () => {} };
  clear(place, el("h1", {}, "Map"), stage);
  make(stage, params, life).catch((error) => clear(stage, problem(error)));
  return () => { life.ended = true; life.leave(); };
}

/** Wait until the map is made, if it is not, and draw it. */
async function make(stage, params, life) {
  let now = await get("/map");
  if (now.state === "none") now = await post("/map", {});
  const bar = el("progress", { "aria-label": "How far the map is", max: 1, value: 0 });
  const words = el("p", { class: "soft" });
  while (!life.ended && now.state === "making") {
    if (!bar.isConnected) clear(stage, el("div", { class: "panel" }, el("p", {}, "The map is laid out once, and kept with the run."), bar, words));
    bar.value = now.done / now.total;
    words.textContent = `${now.what} …`;
    await new Promise((done) => setTimeout(done, 700));
    now = await get("/map");
  }
  if (life.ended) return;
  if (now.state === "failed") throw { title: "The map could not be made.", message: now.what };
  const points = read(await bytes("/map/points"), now.points);
  if (!life.ended) life.leave = drawMap(stage, points, now, params.get("name"));
}

function read(buffer, n) {
  return {
    n,
    id: new Uint32Array(buffer, 0, n),
    x: new Uint16Array(buffer, 4 * n, n),
    y: new Uint16Array(buffer, 6 * n, n),
    role: new Uint8Array(buffer, 8 * n, n),
  };
}

/** The rows of the points of each role, and of each cell of a grid. */
function sorted(points) {
  const byRole = Array.from({ length: ROLES }, () => []);
  const cells = new Map();
  for (let i = 0; i < points.n; i++) {
    byRole[Math.min(points.role[i], ROLES - 1)].push(i);
    const key = (points.x[i] >> 9) * CELLS + (points.y[i] >> 9);
    if (cells.has(key)) cells.get(key).push(i);
    else cells.set(key, [i]);
  }
  return { byRole, cells };
}

function drawMap(stage, points, about, wanted) {
  const { byRole, cells } = sorted(points);
  const row = new Map();
  for (let i = 0; i < points.n; i++) row.set(points.id[i], i);
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `Map of ${count(points.n)} entities, coloured by role. Arrow keys move it, plus and minus zoom; search finds an entity by name.` });
  const tip = el("div", { class: "tip", hidden: true });
  const field = el("div", { class: "finder" });
  const box = el("div", { class: "map" }, canvas, tip,
    el("div", { class: "over" }, tool("Closer", "+", () => zoom(1.5)), tool("Farther", "−", () => zoom(1 / 1.5)), tool("All of it", "⤢", whole)));
  const hidden = new Set();
  const names = [...about.roles, "other roles"];
  const legend = el("ul", { class: "legend" }, names.map((name, i) => {
    const role = i < about.roles.length ? i : ROLES - 1;
    const button = el("button", { type: "button", "aria-pressed": "true" }, el("i", { style: { background: `var(--role${role})` } }), name);
    button.addEventListener("click", () => {
      hidden[hidden.has(role) ? "delete" : "add"](role);
      button.setAttribute("aria-pressed", String(!hidden.has(role)));
      later();
    });
    return el("li", {}, button);
  }));
  const few = about.points < about.entities ? ` (a sample of ${count(about.entities)})` : "";
  clear(stage, el("div", { class: "map-tools" }, field, el("span", { class: "soft small" }, `${count(about.points)} entities${few}; near each other are those that the model holds for alike (t-SNE)`)), box, legend);
  finder(field, { label: "Find on the map", placeholder: "Find on the map", choose: (one) => find(one.name) });

  const eye = { x: 0.5, y: 0.5, zoom: 0.94 };
  const labels = new Map(about.named.map((one) => [one.id, one]));
  let frame = 0;
  let chosen = null;
  let over = null;
  let size = { w: 0, h: 0, ratio: 1 };
  const unit = () => Math.min(size.w, size.h) * eye.zoom;
  const screen = (i) => [size.w / 2 + (points.x[i] / 65535 - eye.x) * unit(), size.h / 2 + (points.y[i] / 65535 - eye.y) * unit()];
  const later = () => { frame ||= requestAnimationFrame(draw); };

  function resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    size = { w: box.clientWidth, h: box.clientHeight, ratio };
    canvas.width = Math.round(size.w * ratio);
    canvas.height = Math.round(size.h * ratio);
    later();
  }

  function draw() {
    frame = 0;
    const began = performance.now();
    const style = getComputedStyle(document.documentElement);
    const pen = canvas.getContext("2d");
    pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    pen.clearRect(0, 0, size.w, size.h);
    const u = unit() / 65535;
    const dx = size.w / 2 - eye.x * unit();
    const dy = size.h / 2 - eye.y * unit();
    const dot = Math.max(1.5, Math.min(7, Math.sqrt(eye.zoom * 1.2e5 / points.n) + 0.6));
    const drawn = points.n < 8000 ? circles(pen, style, u, dx, dy, dot) : squares(pen, style, u, dx, dy, dot);
    write(pen, style, dot);
    canvas.dataset.drawn = drawn;
    canvas.dataset.took = (performance.now() - began).toFixed(1);
  }

  function circles(pen, style, u, dx, dy, dot) {
    let drawn = 0;
    pen.globalAlpha = 0.85;
    for (let role = ROLES - 1; role >= 0; role--) {
      if (hidden.has(role)) continue;
      pen.fillStyle = style.getPropertyValue(`--role${role}`);
      pen.beginPath();
      for (const i of byRole[role]) {
        const x = points.x[i] * u + dx;
        const y = points.y[i] * u + dy;
        if (x < -8 || y < -8 || x > size.w + 8 || y > size.h + 8) continue;
        pen.moveTo(x + dot / 2, y);
        pen.arc(x, y, dot / 2, 0, 7);
        drawn++;
      }
      pen.fill();
    }
    pen.globalAlpha = 1;
    return drawn;
  }

  /** Of many points the pixels are written by hand, several times as fast as rectangles. */
  function squares(pen, style, u, dx, dy, dot) {
    const { width, height } = canvas;
    const image = pen.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const side = Math.max(1, Math.round(dot * size.ratio));
    const [scale, left, top] = [u * size.ratio, dx * size.ratio - side / 2, dy * size.ratio - side / 2];
    let drawn = 0;
    for (let role = ROLES - 1; role >= 0; role--) {
      if (hidden.has(role)) continue;
      const rgb = parseInt(style.getPropertyValue(`--role${role}`).trim().slice(1), 16);
      const colour = (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0; // as bytes: r, g, b, opaque
      for (const i of byRole[role]) {
        const x = Math.round(points.x[i] * scale + left);
        const y = Math.round(points.y[i] * scale + top);
        if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
        drawn++;
        for (let row = y * width + x, end = row + side * width; row < end; row += width)
          for (let at = row; at < row + side; at++) pixels[at] = colour;
      }
    }
    pen.putImageData(image, 0, 0);
    return drawn;
  }

  function write(pen, style, dot) {
    pen.font = "600 12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    const taken = [];
    const put = (i, label, strong) => {
      const [x, y] = screen(i);
      if (x < 0 || y < 0 || x > size.w || y > size.h || hidden.has(points.role[i])) return;
      const w = pen.measureText(label).width;
      const place = [x + dot, y - 8, x + dot + w + 6, y + 8];
      if (!strong && taken.some((o) => place[0] < o[2] && place[2] > o[0] && place[1] < o[3] && place[3] > o[1])) return;
      taken.push(place);
      pen.strokeStyle = style.getPropertyValue("--surface");
      pen.fillStyle = style.getPropertyValue("--ink");
      pen.strokeText(label, x + dot + 2, y);
      pen.fillText(label, x + dot + 2, y);
    };
    if (chosen !== null) {
      const [x, y] = screen(chosen.row);
      pen.strokeStyle = style.getPropertyValue("--other");
      pen.beginPath();
      pen.arc(x, y, 12, 0, 7);
      pen.stroke();
      put(chosen.row, chosen.label, true);
    }
    const room = Math.round(12 * Math.max(1, eye.zoom));
    let written = 0;
    for (const [id, one] of labels) {
      if (written++ >= room) break;
      if (row.has(id)) put(row.get(id), one.label, false);
    }
  }

  function zoom(by, at = [size.w / 2, size.h / 2]) {
    const before = unit();
    eye.zoom = Math.max(0.5, Math.min(200, eye.zoom * by));
    const change = 1 / before - 1 / unit();
    eye.x += (at[0] - size.w / 2) * change;
    eye.y += (at[1] - size.h / 2) * change;
    later();
  }

  function whole() { Object.assign(eye, { x: 0.5, y: 0.5, zoom: 0.94 }); later(); }

  function below(event) {
    const place = canvas.getBoundingClientRect();
    const px = event.clientX - place.left;
    const py = event.clientY - place.top;
    const mx = ((px - size.w / 2) / unit() + eye.x) * 65535;
    const my = ((py - size.h / 2) / unit() + eye.y) * 65535;
    const reach = (14 / unit()) * 65535;
    let best = null;
    let least = reach * reach;
    for (let cx = Math.max(0, (mx - reach) >> 9); cx <= Math.min(CELLS - 1, (mx + reach) >> 9); cx++)
      for (let cy = Math.max(0, (my - reach) >> 9); cy <= Math.min(CELLS - 1, (my + reach) >> 9); cy++)
        for (const i of cells.get(cx * CELLS + cy) ?? []) {
          const d = (points.x[i] - mx) ** 2 + (points.y[i] - my) ** 2;
          if (d < least && !hidden.has(points.role[i])) { least = d; best = i; }
        }
    return best;
  }

  async function named(i) {
    const id = points.id[i];
    if (!labels.has(id)) labels.set(id, (await get("/names", { ids: id })).entities[0]);
    return labels.get(id);
  }

  async function hover(event) {
    const i = below(event);
    over = i;
    if (i === null) { tip.hidden = true; return; }
    const one = await named(i);
    if (over !== i) return;
    const [x, y] = screen(i);
    tip.textContent = one.label;
    Object.assign(tip.style, { left: `${Math.max(60, Math.min(size.w - 60, x))}px`, top: `${Math.max(34, y)}px` });
    tip.hidden = false;
  }

  async function find(name) {
    const card = await get("/neighbourhood", { name, known: 0, predicted: 0 }).catch((error) => { stage.append(problem(error)); });
    if (!card) return;
    const id = card.nodes[0].id;
    const i = row.get(id);
    if (i === undefined) { say("It is not among the entities that were drawn."); return; }
    chosen = { row: i, label: card.nodes[0].label };
    Object.assign(eye, { x: points.x[i] / 65535, y: points.y[i] / 65535, zoom: Math.max(eye.zoom, 5) });
    canvas.dataset.found = card.nodes[0].name;
    say(`${card.nodes[0].label} is in the middle of the map`);
    later();
  }

  const pointers = new Map();
  let spread = 0;
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, event); moved = 0; spread = 0; });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) { hover(event).catch(() => {}); return; }
    const before = pointers.get(event.pointerId);
    pointers.set(event.pointerId, event);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const apart = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      if (spread) zoom(apart / spread);
      spread = apart;
    } else {
      eye.x -= (event.clientX - before.clientX) / unit();
      eye.y -= (event.clientY - before.clientY) / unit();
      moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
      tip.hidden = true;
      later();
    }
  });
  canvas.addEventListener("pointerup", async (event) => {
    const click = pointers.size === 1 && moved < 5;
    pointers.delete(event.pointerId);
    const i = click ? below(event) : null;
    if (i !== null) location.hash = link("entity", { name: (await named(i)).name });
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => { over = null; tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), [event.offsetX, event.offsetY]); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 60 / unit();
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (move) { eye.x += move[0]; eye.y += move[1]; later(); }
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else return;
    event.preventDefault();
  });
  const watch = new ResizeObserver(resize);
  watch.observe(box);
  window.addEventListener("themechange", later);
  resize();
  if (wanted) find(wanted);
  return () => { watch.disconnect(); window.removeEventListener("themechange", later); cancelAnimationFrame(frame); };
}

function tool(name, sign, press) {
  return el("button", { class: "tiny", type: "button", "aria-label": name, title: name, onclick: press }, sign);
}
