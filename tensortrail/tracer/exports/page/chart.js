// Bytes over time, a strip for each device, with the phases above. Shares its time axis with the lanes.

const LONGEST_NAME = Math.min(Math.max(...data.devices.map((use) => use.name.length), 11), 16);
const GUTTER = 35 + 7 * LONGEST_NAME;
const STRIP = 74;
const PHASE = 22;

const view = {
  start: 0, end: 1, watchers: [],
  show(start, end) {
    const length = Math.min(Math.max(end - start, run.seconds * 1e-5), run.seconds);
    this.start = Math.min(Math.max(start, 0), run.seconds - length);
    this.end = this.start + length;
    for (const each of this.watchers) each();
  },
  zoom(factor, at = (this.start + this.end) / 2) {
    this.show(at - (at - this.start) * factor, at + (this.end - at) * factor);
  },
  pan(share) {
    const by = (this.end - this.start) * share;
    this.show(this.start + by, this.end + by);
  },
  x(time, width) {
    return GUTTER + ((time - this.start) / (this.end - this.start)) * (width - GUTTER);
  },
  time(x, width) {
    return this.start + ((x - GUTTER) / (width - GUTTER)) * (this.end - this.start);
  },
};

// Wheel with a modifier or sideways, dragging, and keys, on the element of a chart.
function steered(node) {
  let from = null;
  node.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !sideways) return;
    event.preventDefault();
    const { left, width } = node.getBoundingClientRect();
    if (sideways) view.pan(event.deltaX / width);
    else view.zoom(event.deltaY > 0 ? 1.25 : 0.8, view.time(event.clientX - left, width));
  }, { passive: false });
  node.addEventListener("pointerdown", (event) => { from = { x: event.clientX, start: view.start, end: view.end }; });
  window.addEventListener("pointerup", () => { from = null; });
  node.addEventListener("pointermove", (event) => {
    if (!from || Math.abs(event.clientX - from.x) < 4) return;
    const width = node.getBoundingClientRect().width - GUTTER;
    const by = ((from.x - event.clientX) / width) * (from.end - from.start);
    view.show(from.start + by, from.end + by);
  });
  node.addEventListener("keydown", (event) => {
    const act = {
      ArrowLeft: () => view.pan(-0.1), ArrowRight: () => view.pan(0.1), "+": () => view.zoom(0.7),
      "=": () => view.zoom(0.7), "-": () => view.zoom(1.4), 0: () => view.show(0, run.seconds),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
}

// The innermost phase of all that are long enough to be seen, in as few rows as they need.
function phaseRows() {
  const ends = [];
  return run.phases.map((phase) => {
    let row = ends.findIndex((end) => end <= phase.start + 1e-9);
    if (row < 0) row = ends.length;
    ends[row] = phase.end;
    return { phase, row: Math.min(row, 3) };
  });
}

function chart() {
  const rows = phaseRows();
  const bands = Math.max(0, ...rows.map((each) => each.row + 1)) * PHASE;
  const height = bands + run.devices.length * STRIP + 26;
  const told = run.devices.map((each) => `${each.name} at most ${size(each.peak)}`).join(", ");
  const root = svg("svg", { height, role: "img", tabindex: "0", "aria-label": `Bytes over time: ${told}.` });
  const box = el("div", { class: "card chart" }, root);
  const cross = svg("line", { class: "cross", y1: bands, y2: height - 24, visibility: "hidden" });

  function draw() {
    const width = box.clientWidth || 1000;
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = svg("clipPath", { id: "plot" },
      svg("rect", { x: GUTTER, y: 0, width: Math.max(width - GUTTER, 1), height }));
    const label = bands ? [svg("text", { x: 14, y: 15, "font-weight": 600 }, "phases")] : [];
    root.replaceChildren(svg("defs", {}, clip), ...label, ...phasesDrawn(rows, width, bands, height),
      ...run.devices.flatMap((each, place) => strip(each, bands + place * STRIP, width)),
      ...axis(width, height), cross);
  }
  root.addEventListener("pointermove", (event) => {
    const { left, width } = root.getBoundingClientRect();
    const time = view.time(event.clientX - left, width);
    const inside = time >= view.start && time <= view.end;
    cross.setAttribute("visibility", inside ? "visible" : "hidden");
    if (!inside) return hint(null);
    cross.setAttribute("x1", event.clientX - left);
    cross.setAttribute("x2", event.clientX - left);
    const step = Math.min(Math.floor((time / run.seconds) * 600), 599);
    const phase = run.phases.filter((each) => each.start <= time && time <= each.end).at(-1);
    hint(event, el("b", {}, moment(time), phase ? ` · ${phase.name}` : ""),
      ...run.devices.map((each) => el("div", {}, device(each.name), size(each.curve[step] || 0))));
  });
  root.addEventListener("pointerleave", () => { hint(null); cross.setAttribute("visibility", "hidden"); });
  steered(root);
  view.watchers.push(draw);
  new ResizeObserver(draw).observe(box);
  return box;
}

function phasesDrawn(rows, width, bands, height) {
  const names = [...new Set(run.phases.map((each) => each.name))];
  return rows.flatMap(({ phase, row }) => {
    const x = Math.max(view.x(phase.start, width), GUTTER);
    const long = Math.min(view.x(phase.end, width), width) - x;
    if (long < 0.5 || x > width) return [];
    const odd = names.indexOf(phase.name) % 2 ? " odd" : "";
    const label = long > 44 && svg("text", { x: x + 7, y: row * PHASE + 15 },
      phase.name.length * 7 > long - 12 ? `${phase.name.slice(0, Math.floor((long - 14) / 7))}…` : phase.name);
    const band = svg("rect", { class: `band${odd}`, x, y: row * PHASE + 1, width: long, height: PHASE - 3, rx: 4 },
      svg("title", {}, `${phase.name}, ${duration(phase.end - phase.start)}${phase.ended ? "" : ", did not end"}`));
    const rule = row === 0 && svg("line", { class: "axis", x1: x, x2: x, y1: bands, y2: height - 24 });
    return [band, label, rule].filter(Boolean);
  });
}

function strip(use, top, width) {
  const base = top + STRIP - 8;
  const tall = STRIP - 22;
  const colour = run.colour(use.name);
  const step = run.seconds / use.curve.length;
  let path = "";
  use.curve.forEach((bytes, place) => {
    const left = view.x(place * step, width);
    const right = view.x((place + 1) * step, width);
    if (right < GUTTER || left > width) return;
    const y = (base - (use.peak ? bytes / use.peak : 0) * tall).toFixed(1);
    path += `${path ? "L" : "M"}${Math.max(left, GUTTER).toFixed(1)} ${y}H${right.toFixed(1)}`;
  });
  const group = svg("g", { class: colour, "clip-path": "url(#plot)" },
    path && svg("path", { class: "area", d: `${path}V${base}H${GUTTER}Z` }),
    path && svg("path", { class: "edge", d: path }));
  return [
    svg("line", { class: "axis", x1: GUTTER, x2: width, y1: base, y2: base }), group,
    svg("circle", { cx: 19, cy: top + 29, r: 5, fill: "var(--device)", class: colour }),
    svg("text", { x: 31, y: top + 33, "font-weight": 600 }, use.name.slice(0, LONGEST_NAME)),
    svg("text", { x: 14, y: top + 52 }, `${size(use.peak)} peak`),
  ];
}

function axis(width, height) {
  const step = steps(view.end - view.start, Math.max(width - GUTTER, 80) / 110);
  const marks = [];
  for (let time = Math.ceil(view.start / step) * step; time <= view.end; time += step) {
    const x = view.x(time, width);
    if (x > width - 30) break;
    marks.push(svg("line", { class: "axis", x1: x, x2: x, y1: height - 24, y2: height - 19 }),
      svg("text", { x: x + 3, y: height - 8 }, mark(time, step)));
  }
  return marks;
}
