// Making elements. Whatever comes from the run becomes text, never markup.

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") {
      for (const [type, act] of Object.entries(value)) node.addEventListener(type, act);
    } else {
      node.setAttribute(key, value === true ? "" : seen(value));
    }
  }
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(seen(child, "\n")));
  }
  return node;
}

const el = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);
const svg = (tag, props = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

const byId = (id) => document.getElementById(id);

function section(id, title, amount, lead, ...children) {
  const heading = el("h2", { id: `${id}-title` }, title, amount && el("span", { class: "count" }, amount));
  const head = [heading, lead && el("p", { class: "lead" }, lead)];
  return el("section", { id, "aria-labelledby": `${id}-title` }, head, children);
}

function place(site, role = "") {
  if (!site) return null;
  const where = [el("b", {}, `${site.short}:${site.line}`), site.function && site.function !== "<module>" && ` ${site.function}`];
  return el("span", { class: "place", title: `${site.file}:${site.line}` },
    role && el("span", { class: "role" }, `${role} `), where);
}

// Messages put code between backticks.
const prose = (message) =>
  message.split(/`([^`\n]+)`/).map((piece, place) => (place % 2 ? el("code", {}, piece) : piece));

const source = (site) => (site && site.source ? el("pre", {}, el("code", {}, site.source)) : null);

function device(name) {
  return el("span", { class: `dev ${run.colour(name)}` }, name);
}

function flow(from, to) {
  return el("span", { class: "flow" }, device(from), el("span", { "aria-label": "to" }, "→"), device(to));
}

function bar(share, colour = "") {
  const inner = el("i");
  inner.style.width = `${Math.max(share * 100, 1)}%`;
  return el("span", { class: `bar ${colour}`, "aria-hidden": "true" }, inner);
}

function link(storage, label = storage.title) {
  return el("button", { type: "button", class: "link mono", on: { click: () => follow(storage) } }, label);
}

function hint(event, ...children) {
  const box = byId("hint");
  box.hidden = !event;
  if (!event) return;
  box.replaceChildren(...children);
  const { innerWidth: width, innerHeight: height } = window;
  const { offsetWidth: w, offsetHeight: h } = box;
  box.style.left = `${event.clientX + 16 + w > width ? event.clientX - w - 12 : event.clientX + 16}px`;
  box.style.top = `${Math.min(event.clientY + 14, height - h - 8)}px`;
}

// The first few rows, and a button for the next ones.
function inPortions(rows, portion, show, add) {
  let shown = 0;
  const button = el("button", { type: "button", class: "more", on: { click: () => next() } });
  function next() {
    for (const row of rows.slice(shown, shown + portion)) add(show(row));
    shown = Math.min(shown + portion, rows.length);
    button.hidden = shown >= rows.length;
    button.textContent = `Show more (${(rows.length - shown).toLocaleString("en")} left)`;
  }
  next();
  return button;
}
