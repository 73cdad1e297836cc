// The trail of one storage, in a panel at the side.

const MAJOR = new Set(["create", "move", "load", "save", "free", "stage", "swap", "error", "meet"]);
let cameFrom = null;

function showTrail(storage) {
  const panel = byId("trail");
  lanes.chosen = storage;
  lanes.draw();
  if (!storage) {
    panel.hidden = true;
    if (cameFrom && cameFrom.isConnected) cameFrom.focus({ preventScroll: true });
    cameFrom = null;
    return;
  }
  if (panel.hidden) cameFrom = document.activeElement;
  const close = el("button", { type: "button", class: "quiet", "aria-label": "Close the trail", on: { click: () => follow(null) } }, "✕");
  const chip = (...children) => el("span", { class: "chip" }, children);
  panel.replaceChildren(
    el("header", {}, el("h2", { id: "trail-name" }, storage.title), close),
    el("div", { class: "chips" }, chip(device(storage.device)), chip(size(storage.bytes)),
      chip(el("code", {}, `${storage.dtype} ${storage.shape}`)), storage.type && chip(storage.type),
      chip(`storage ${storage.number}, ${storage.process}`),
      chip(storage.isFreed ? `lived ${duration(storage.end - storage.born)}` : "alive at the end")),
    storage.after.length > 0 && el("p", { class: "went" }, "Went on as ",
      storage.after.slice(0, 8).flatMap((each, place) => [place ? ", " : "", link(each), " on ", device(each.device)]),
      storage.after.length > 8 && `, and ${storage.after.length - 8} more`) || "",
    el("ol", { class: "events" }, storage.line.flatMap((each) => told(each, storage))));
  panel.hidden = false;
  panel.scrollTop = 0;
  close.focus({ preventScroll: true });
}

// Of a storage before, only what happened to it until its bytes went on.
function told(each, last) {
  const next = last.line[last.line.indexOf(each) + 1];
  const until = next ? next.born + 1e-6 : Infinity;
  const events = each.events.filter((event) => event.time <= until && !(next && event.other === next));
  const left = each.amount - each.rows.length;
  // The same on the same line, over and over, is told once.
  const groups = [];
  let gapAfter = -1;
  events.forEach((event, place) => {
    const last = groups.at(-1);
    const isSame = last && place !== data.firstEvents && last[0].what === event.what && last[0].site === event.site && !event.other;
    if (isSame) last.push(event);
    else groups.push([event]);
    if (place < data.firstEvents) gapAfter = groups.length;
  });
  const items = groups.map((group) => eventItem(group, each));
  if (left > 0) items.splice(gapAfter, 0, el("li", { class: "gap" }, `${count(left, "event")} between these are in the trail, not on this page`));
  return items;
}

function eventItem(group, storage) {
  const [event] = group;
  const last = group.at(-1);
  const kind = ENDS_BADLY.has(event.did) ? "bad" : "";
  const major = MAJOR.has(event.did) ? "major" : "";
  const where = [event.phase, event.thread !== "MainThread" && event.thread].filter(Boolean).join(", ");
  return el("li", { class: `${run.colour(storage.device)} ${kind} ${major}` },
    el("span", { class: "when", title: where },
      group.length > 1 ? `${moment(event.time)} to ${moment(last.time)}` : moment(event.time)),
    el("div", { class: "what" }, event.what, group.length > 1 && el("span", { class: "times" }, ` ${group.length} times`),
      event.other && event.other !== storage.before ? [" ", link(event.other, "→ follow")] : ""),
    event.did !== "free" && [place(event.site), source(event.site), place(event.by, "by")]);
}
