// Puts the page together; the address says what is looked for and followed.

const PORTION = 12;
const NAV = {
  findings: "Findings", troubles: "Errors", ranks: "Ranks", placements: "Placement", memory: "Memory", storages: "Storages", moves: "Moves", alive: "At the end",
};
let lanes;

function address() {
  return new URLSearchParams(location.hash.slice(1));
}

function goTo(changes) {
  const now = address();
  for (const [key, value] of Object.entries(changes)) {
    if (value) now.set(key, value);
    else now.delete(key);
  }
  for (const key of [...now.keys()]) if (!["storage", "q", "theme"].includes(key)) now.delete(key);
  history.replaceState(null, "", `#${now}`);
  obey();
}

function follow(storage) {
  hint(null);
  goTo({ storage: storage ? storage.key : "" });
}

function lookFor(site) {
  goTo({ q: `${site.short}:${site.line} ${site.function}` });
  byId("found-head").scrollIntoView();
}

function storagesSection() {
  const shown = run.storages.length;
  const left = data.storagesInAll - shown;
  const lead = `${lanes.lanes.some((lane) => lane.folds)
    ? "In a lane with very many storages, similar ones share a row: those of the same name in other layers, or made by one line. Click a row to list them. In other lanes a" : "A"
  } bar lasts from creation to release, its height grows with its bytes, and a line shows where the bytes went. ${
    left > 0 ? `Shown are ${shown.toLocaleString("en")} of ${data.storagesInAll.toLocaleString("en")} storages: the largest, the busiest and those of errors; the others are only in the curves and tables. ` : ""
  }Drag to pan, hold Ctrl or Shift and scroll to zoom, click a bar to follow it.`;
  const button = (label, act, more = {}) => el("button", { type: "button", ...more, on: { click: act } }, label);
  const isFolded = lanes.lanes.some((lane) => lane.folds);
  const tall = button(isFolded ? "Each storage" : "Taller lanes", () => {
    lanes.tall = !lanes.tall;
    tall.setAttribute("aria-pressed", lanes.tall);
    lanes.draw();
  }, { "aria-pressed": "false" });
  const order = el("select", { id: "order", "aria-label": "Order", on: { change: obey } },
    el("option", { value: "bytes" }, "largest first"), el("option", { value: "born" }, "oldest first"),
    el("option", { value: "amount" }, "busiest first"));
  return section("storages", "Storages", "", lead,
    el("div", { class: "tools" }, button("Zoom in", () => view.zoom(0.5)), button("Zoom out", () => view.zoom(2)),
      button("Whole run", () => view.show(0, run.seconds)), tall),
    lanes.box,
    el("div", { class: "tools", id: "found-head" },
      el("span", { id: "matches", role: "status", "aria-live": "polite", class: "soft" }), el("span", { class: "grow" }), order),
    el("div", { class: "card scroll", id: "found" }));
}

function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? run.storages.filter((each) => each.fits(words)) : [...run.storages];
  const order = byId("order").value;
  found.sort((a, b) => (order === "born" ? a.born - b.born : b[order] - a[order]) || a.place - b.place);
  lanes.fitting = words.length ? new Set(found) : null;
  byId("matches").textContent = words.length
    ? `${found.length.toLocaleString("en")} of ${count(run.storages.length, "storage")} match “${seen(query)}”`
    : count(run.storages.length, "storage");
  const body = el("tbody");
  const row = (each) => el("tr", {},
    el("td", {}, link(each)), el("td", {}, device(each.device)),
    el("td", { class: "mono" }, [each.type, each.dtype, each.shape].filter(Boolean).join(" ")),
    el("td", { class: "number" }, moment(each.born)),
    el("td", { class: "number" }, each.isFreed ? duration(each.end - each.born) : "to the end"),
    el("td", { class: "number" }, each.amount.toLocaleString("en")),
    el("td", { class: "number" }, size(each.bytes)));
  const more = inPortions(found, PORTION, row, (each) => body.append(each));
  const heads = ["storage", "device", "type and shape"].map((each) => el("th", {}, each));
  const numbers = ["since", "lived", "events", "bytes"].map((each) => el("th", { class: "number" }, each));
  byId("found").replaceChildren(found.length
    ? el("div", {}, el("table", {}, el("thead", {}, el("tr", {}, heads, numbers)), body), more)
    : el("p", { class: "empty" }, "No storage matches. Names, files, functions, devices, dtypes, shapes and phases are searched."));
}

let searched = null;
function obey() {
  const asked = address();
  const query = asked.get("q") || "";
  const key = `${byId("order").value} ${query}`;
  if (key !== searched) {
    searched = key;
    if (byId("query").value !== query) byId("query").value = query;
    search(query);
  }
  const storage = run.byKey.get(asked.get("storage") || "") || null;
  if (storage !== lanes.chosen) showTrail(storage);
  else lanes.draw();
  if (asked.get("theme")) setTheme(asked.get("theme"));
}

function setTheme(name) {
  if (document.documentElement.dataset.theme === name) return;
  document.documentElement.dataset.theme = name === "dark" ? "dark" : "light";
  byId("theme").textContent = name === "dark" ? "☀" : "☾";
  if (lanes) lanes.draw();
}

function stored(value) {
  try { // A browser may refuse storage to files.
    if (value) localStorage.setItem("tensortrail-theme", value);
    return localStorage.getItem("tensortrail-theme");
  } catch {
    return null;
  }
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(stored() || (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => { if (!stored()) setTheme(dark.matches ? "dark" : "light"); });
  run = new Run();
  document.title = `${seen(run.argv.join(" ")) || "run"} · tensortrail`;
  lanes = new Lanes();
  const memory = run.devices.length > 0 && section("memory", "Memory over time", "",
    `The most bytes at each moment, as far as storages were seen. Time begins with the first event of the run${
      run.phases.length ? "; its phases are the bands above" : ""}.`, chart());
  const parts = [overview(), findings(), troubles(), ranks(), placements(), memory, storagesSection(), moves(), alive()].filter(Boolean);
  byId("main").replaceChildren(...parts);
  byId("nav").replaceChildren(...parts.slice(1).map((part) => el("a", {
    href: `#${part.id}`,
    on: { click: (event) => { event.preventDefault(); part.scrollIntoView(); } },
  }, NAV[part.id])));
  const toFound = () => {
    const { top, bottom } = byId("found-head").getBoundingClientRect();
    if (top < 60 || bottom > innerHeight * 0.7) byId("found-head").scrollIntoView();
  };
  byId("query").addEventListener("input", (event) => {
    goTo({ q: event.target.value });
    if (event.target.value) toFound();
  });
  byId("search").addEventListener("submit", (event) => { event.preventDefault(); toFound(); });
  byId("theme").addEventListener("click", () => {
    const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    goTo({ theme: "" });
    setTheme(stored(name) || name);
  });
  document.querySelector(".brand").addEventListener("click", (event) => { event.preventDefault(); scrollTo(0, 0); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && lanes.chosen) follow(null);
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
      event.preventDefault();
      byId("query").focus();
    }
  });
  window.addEventListener("hashchange", obey);
  view.show(0, run.seconds);
  obey();
}

start();
