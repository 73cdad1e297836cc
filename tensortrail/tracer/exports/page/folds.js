// A lane of very many storages is folded: a row for those that are alike, with their bytes over time.

const FOLD_ABOVE = 400;
const MOST_FOLDS = 12;
const FOLD = 30;

// Layers differ by their number only; what has no name is alike if one line made it.
function kindOf(storage) {
  if (storage.name) return storage.name.replace(/(^|\.)\d+(?=\.|$)/g, "$1*");
  const made = storage.events.find((event) => event.site);
  return made ? `made at ${made.site.short}:${made.site.line}` : "of unknown origin";
}

function folded(storages) {
  const kinds = new Map();
  for (const each of storages) {
    const kind = kindOf(each);
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(each);
  }
  const bytes = (group) => group.reduce((sum, each) => sum + each.bytes, 0);
  const rows = [...kinds].map(([name, group]) => ({ name, group, bytes: bytes(group) }));
  rows.sort((a, b) => b.bytes - a.bytes);
  const left = rows.splice(MOST_FOLDS);
  if (left.length) {
    const group = left.flatMap((each) => each.group);
    rows.push({ name: `${left.length} other kinds`, group, bytes: bytes(group) });
  }
  return rows.map((row) => ({ ...row, ...levelOf(row.group), asked: askedFor(row) }));
}

// What to search for to see them in the list.
function askedFor({ name, group }) {
  const made = name.startsWith("made at") && group[0].events.find((event) => event.site).site;
  if (made) return `${made.short}:${made.line} ${made.function}`;
  return name.split("*").filter((piece) => piece.length > 1).join(" ");
}

// Their bytes, from each time on, and the most there were.
function levelOf(group) {
  const changes = group.flatMap((each) => [[each.born, each.bytes], [each.end, each.isFreed ? -each.bytes : 0]]);
  changes.sort((a, b) => a[0] - b[0]);
  let now = 0;
  let peak = 1;
  const level = changes.map(([time, change]) => {
    now += change;
    peak = Math.max(peak, now);
    return [time, now];
  });
  return { level, peak };
}

function drawFold(pen, row, top, width, paint, inks, isDim) {
  const base = top + FOLD - 4;
  const tall = FOLD - 19;
  pen.globalAlpha = isDim ? 0.1 : 0.55;
  pen.fillStyle = paint;
  pen.beginPath();
  pen.moveTo(GUTTER, base);
  let x = GUTTER;
  let high = 0;
  for (const [time, bytes] of row.level) {
    const next = Math.min(Math.max(view.x(time, width), GUTTER), width);
    pen.lineTo(x, base - high);
    pen.lineTo(next, base - high);
    x = next;
    high = Math.max((bytes / row.peak) * tall, bytes ? 1.5 : 0);
  }
  pen.lineTo(x, base - high);
  pen.lineTo(width, base - high);
  pen.lineTo(width, base);
  pen.fill();
  pen.globalAlpha = isDim ? 0.4 : 1;
  pen.fillStyle = inks.ink;
  pen.font = "11px ui-monospace, Menlo, Consolas, monospace";
  const room = Math.floor((width - GUTTER - 12) / 6.7);
  const label = `${seen(row.name)}  ${count(row.group.length, "storage")}, ${size(row.peak)} at most`;
  pen.fillText(label.length > room ? `${label.slice(0, room - 1)}…` : label, GUTTER + 6, top + 10);
  pen.globalAlpha = 1;
}
