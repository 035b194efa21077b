"use strict";
(() => {
  const root = document.documentElement;

  // Light or dark: what the address says (?theme=dark), else what was chosen before, else what the system wants.
  const store = (value) => {
    try { return value ? localStorage.setItem("relwalk-theme", value) : localStorage.getItem("relwalk-theme"); } catch { return null; }
  };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const asked = new URLSearchParams(location.search).get("theme") || store();
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    store(root.dataset.theme);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());

  // Tables sort by the value of their cells; what has none goes last, whichever the direction.
  const key = (row, column) => {
    const value = row.cells[column].dataset.value;
    return value === undefined ? null : value !== "" && !isNaN(value) ? Number(value) : value;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table.sorts")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
      const rows = [...body.rows], numbers = rows.some((row) => typeof key(row, column) === "number");
      const now = head.getAttribute("aria-sort");
      const up = now === "none" ? !numbers : now === "descending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      rows.sort((p, q) => {
        const a = key(p, column), b = key(q, column);
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * compare(a, b);
      });
      body.append(...rows);
    }));
  }
  for (const box of document.querySelectorAll(".filter")) {
    const rows = [...box.parentElement.querySelectorAll("table.sorts tbody tr")];
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
  }

  // The map of the entities.
  const canvas = document.getElementById("map-canvas"), tip = document.getElementById("map-tip");
  const data = canvas ? JSON.parse(document.getElementById("map-data").textContent) : null;
  const GRID = 9999, view = { zoom: 1, x: 0, y: 0 };
  let found = [], hovered = -1, place = null;
  const middle = (values) => (spread(values)[0] + spread(values)[1]) / 2;
  const middles = data && { x: middle(data.x), y: middle(data.y) };

  function spread(values) {
    let low = GRID, high = 0;
    for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
    return [low, high];
  }

  function fit() {
    const box = canvas.getBoundingClientRect(), [x0, x1] = spread(data.x), [y0, y1] = spread(data.y);
    const scale = Math.min(box.width / (x1 - x0 || 1), box.height / (y1 - y0 || 1)) * 0.92 * view.zoom;
    return {
      box, scale,
      at: (i) => [box.width / 2 + (data.x[i] - middles.x) * scale + view.x, box.height / 2 - (data.y[i] - middles.y) * scale + view.y],
    };
  }

  function draw() {
    if (!canvas) return;
    place = fit();
    const ratio = devicePixelRatio || 1, { box, at } = place, style = getComputedStyle(root), many = data.x.length;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const size = Math.max(1.1, Math.min(3.4, 140 / Math.sqrt(many)) * Math.min(1, Math.sqrt(box.width / 800))) * Math.min(2, Math.sqrt(view.zoom));
    const colours = [...data.roles.keys()].map((k) => style.getPropertyValue("--role" + k).trim());
    const rest = style.getPropertyValue("--faint").trim(), ink = style.getPropertyValue("--ink").trim();
    const dim = found.length > 0;
    for (let role = 7; role >= 0; role--) {
      pen.fillStyle = colours[role] || rest;
      pen.globalAlpha = dim ? 0.15 : colours[role] ? 0.72 : 0.4;
      pen.beginPath();
      for (let i = 0; i < many; i++) {
        if (data.role[i] !== role) continue;
        const [x, y] = at(i);
        if (x < -9 || y < -9 || x > box.width + 9 || y > box.height + 9) continue;
        pen.moveTo(x + size, y);
        pen.arc(x, y, size, 0, 6.2832);
      }
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    for (const [n, i] of found.slice(0, 400).entries()) {
      const [x, y] = at(i);
      pen.fillStyle = colours[data.role[i]] || ink;
      pen.beginPath(); pen.arc(x, y, size + 2.5, 0, 6.2832); pen.fill();
      if (n < 25) {
        const wide = pen.measureText(data.label[i]).width;
        pen.fillStyle = ink;
        pen.fillText(data.label[i], x + wide + 12 > box.width ? x - wide - 7 : x + 7, y + 4);
      }
    }
    if (!dim) {
      // The best connected bear their names, as far as these do not touch each other.
      const boxes = [];
      pen.font = "11px " + getComputedStyle(document.body).fontFamily;
      pen.fillStyle = ink; pen.strokeStyle = style.getPropertyValue("--page").trim(); pen.lineWidth = 3; pen.lineJoin = "round";
      for (const i of data.named) {
        const [x, y] = at(i), wide = pen.measureText(data.label[i]).width, left = x - wide / 2;
        if (left < 2 || left + wide > box.width - 2 || y < 18 || y > box.height - 4 || wide > 160) continue;
        if (boxes.some(([l, r, b]) => left < r + 10 && left + wide > l - 10 && Math.abs(y - b) < 22)) continue;
        boxes.push([left, left + wide, y]);
        pen.strokeText(data.label[i], left, y - 6);
        pen.fillText(data.label[i], left, y - 6);
        if (boxes.length >= 30 * Math.min(1, box.width / 700)) break;
      }
    }
    if (hovered >= 0) {
      const [x, y] = at(hovered);
      pen.strokeStyle = ink; pen.lineWidth = 1.5;
      pen.beginPath(); pen.arc(x, y, size + 3, 0, 6.2832); pen.stroke();
    }
    canvas.dataset.drawn = many;
  }

  function point(event) {
    const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = -1, least = 18 * 18;
    for (let i = 0; i < data.x.length; i++) {
      const [x, y] = place.at(i), gap = (x - px) ** 2 + (y - py) ** 2;
      if (gap < least) { least = gap; best = i; }
    }
    if (best !== hovered) { hovered = best; requestAnimationFrame(draw); }
    tip.hidden = best < 0;
    if (best < 0) return;
    tip.textContent = data.label[best];
    const [x, y] = place.at(best);
    tip.style.left = Math.max(0, Math.min(x + 12, box.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(0, y - 34) + "px";
  }

  if (canvas) {
    let drag = null;
    canvas.addEventListener("pointerdown", (e) => { if (e.pointerType === "mouse") drag = [e.clientX - view.x, e.clientY - view.y]; else point(e); });
    addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointermove", (e) => {
      if (!drag) return point(e);
      view.x = e.clientX - drag[0]; view.y = e.clientY - drag[1];
      tip.hidden = true;
      requestAnimationFrame(draw);
    });
    canvas.addEventListener("pointerleave", () => { hovered = -1; tip.hidden = true; draw(); });
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => {
      const by = Number(button.dataset.zoom);
      if (by) { view.zoom *= by; view.x *= by; view.y *= by; } else Object.assign(view, { zoom: 1, x: 0, y: 0 });
      draw();
    });
    document.getElementById("map-find").addEventListener("input", (e) => {
      const wanted = e.target.value.trim().toLowerCase();
      found = [];
      if (wanted) data.label.forEach((label, i) => { if (label.toLowerCase().includes(wanted)) found.push(i); });
      document.getElementById("map-said").textContent = wanted ? found.length + (found.length === 1 ? " entity" : " entities") : "";
      draw();
    });
    new ResizeObserver(draw).observe(canvas);
    draw();
  }
  root.dataset.ready = "yes";
})();
