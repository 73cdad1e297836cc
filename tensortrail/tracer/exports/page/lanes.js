// A lane for each device, a bar for each storage from its creation to its end.

const LOWEST = 3;
const TALLEST = 30;
const LANE = 230;

class Lanes {
  constructor() {
    this.canvas = el("canvas", {
      tabindex: "0", role: "img",
      "aria-label": "Storages by device over time. The list below holds the same storages. Arrows pan, plus and minus zoom.",
    });
    this.box = el("div", { class: "card chart" }, this.canvas);
    this.tall = false;
    this.fitting = null;
    this.chosen = null;
    this.lanes = this.packed();
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => hint(null));
    this.canvas.addEventListener("click", (event) => {
      if (Math.abs(event.clientX - this.pressed) >= 4) return;
      const [found, fold] = [this.under(event), this.fold(event)];
      if (found) follow(found);
      else if (fold) goTo({ q: fold.asked });
    });
    this.canvas.addEventListener("pointerdown", (event) => { this.pressed = event.clientX; });
    steered(this.canvas);
    const draw = () => this.draw();
    view.watchers.push(draw);
    new ResizeObserver(draw).observe(this.box);
  }

  packed() {
    const most = Math.max(1, ...run.storages.map((each) => each.bytes));
    const names = [...run.devices.map((each) => each.name)];
    for (const each of run.storages) if (!names.includes(each.device)) names.push(each.device);
    return names.map((name) => {
      const storages = run.storages.filter((each) => each.device === name);
      for (const each of storages) {
        each.height = LOWEST + Math.round((each.bytes / most) ** 0.45 * (TALLEST - LOWEST));
      }
      const folds = storages.length > FOLD_ABOVE ? folded(storages) : null;
      return { name, storages, folds, height: stacked(storages) };
    }).filter((lane) => lane.storages.length);
  }

  layout() {
    let top = 6;
    for (const lane of this.lanes) {
      lane.top = top;
      lane.isFolded = lane.folds && !this.tall;
      lane.pixels = lane.isFolded ? Math.max(lane.folds.length * FOLD, 34) : Math.max(Math.min(lane.height, this.tall ? 2400 : LANE), 34);
      lane.scale = Math.min(lane.pixels / Math.max(lane.height, 1), 1);
      top += lane.pixels + 12;
    }
    return top;
  }

  draw() {
    const width = this.box.clientWidth || 1000;
    const height = this.layout();
    const sharp = window.devicePixelRatio || 1;
    this.canvas.width = width * sharp;
    this.canvas.height = height * sharp;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(sharp, sharp);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.inks = { ink: colour("--ink"), soft: colour("--soft"), line: colour("--line"), surface: colour("--surface") };
    for (const lane of this.lanes) this.drawLane(pen, lane, width);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, 0, width - GUTTER, height);
    pen.clip();
    const moved = run.storages.filter((each) => each.before).length;
    this.faint = Math.min(Math.max(30 / moved, 0.05), 0.3);
    const line = new Set(this.chosen ? this.chosen.line : []);
    const drawn = (each) => each.before && !this.isFolded(each) && !this.isFolded(each.before);
    for (const each of run.storages) if (drawn(each) && !line.has(each)) this.arrow(pen, each, width, false);
    for (const each of line) if (drawn(each)) this.arrow(pen, each, width, true);
    pen.restore();
  }

  drawLane(pen, lane, width) {
    const { inks } = this;
    const paint = run.paint(lane.name);
    pen.fillStyle = paint;
    pen.beginPath();
    pen.arc(19, lane.top + 12, 5, 0, 7);
    pen.fill();
    pen.fillStyle = inks.soft;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(lane.name.slice(0, LONGEST_NAME + 1), 31, lane.top + 16);
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(count(lane.storages.length, "storage"), 14, lane.top + 32);
    pen.strokeStyle = inks.line;
    pen.beginPath();
    pen.moveTo(0, lane.top + lane.pixels + 6.5);
    pen.lineTo(width, lane.top + lane.pixels + 6.5);
    pen.stroke();
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, lane.top, width - GUTTER, lane.pixels);
    pen.clip();
    if (lane.isFolded) {
      lane.folds.forEach((row, place) => drawFold(pen, row, lane.top + place * FOLD, width, paint, inks,
        this.fitting && !row.group.some((each) => this.fitting.has(each))));
    } else {
      for (const each of lane.storages) this.drawBar(pen, lane, each, paint, width);
    }
    pen.restore();
  }

  isFolded(storage) {
    return this.lanes.find((each) => each.name === storage.device).isFolded;
  }

  drawBar(pen, lane, storage, paint, width) {
    const left = view.x(storage.born, width);
    const right = view.x(storage.end, width);
    if (right < GUTTER - 2 || left > width) return;
    const y = this.upper(lane, storage);
    const high = Math.max(storage.height * lane.scale - (lane.scale > 0.5 ? 1 : 0), 0.7);
    const long = Math.max(right - left - 0.6, 1.2);
    const fits = !this.fitting || this.fitting.has(storage);
    const isChosen = this.chosen && this.chosen.line.includes(storage);
    pen.globalAlpha = fits || isChosen ? 0.5 + (storage.number % 4) * 0.12 : 0.08;
    pen.fillStyle = paint;
    pen.fillRect(left, y, long, high);
    pen.globalAlpha = 1;
    if (isChosen) {
      pen.strokeStyle = this.inks.ink;
      pen.lineWidth = storage === this.chosen ? 2 : 1;
      pen.strokeRect(left, y, long, high);
      pen.lineWidth = 1;
    }
    if (high >= 13 && long > 70 && fits) {
      const from = Math.max(left, GUTTER) + 5;
      const room = Math.floor((Math.min(right, width) - from - 6) / 6.2);
      if (room < 5) return;
      pen.fillStyle = this.inks.ink;
      pen.font = "11px ui-monospace, Menlo, Consolas, monospace";
      const title = seen(storage.title);
      pen.fillText(title.length > room ? `${title.slice(0, room - 1)}…` : title, from, y + high / 2 + 4);
    }
  }

  middle(storage) {
    const lane = this.lanes.find((each) => each.name === storage.device);
    return this.upper(lane, storage) + (storage.height / 2) * lane.scale;
  }

  // Bars pile up from the ground of their lane.
  upper(lane, storage) {
    return lane.top + lane.pixels - (storage.y + storage.height) * lane.scale;
  }

  arrow(pen, storage, width, strong) {
    const x = view.x(storage.born, width);
    if (x < GUTTER || x > width) return;
    const dim = this.fitting && !this.fitting.has(storage);
    const [from, to] = [this.middle(storage.before), this.middle(storage)];
    pen.globalAlpha = strong ? 1 : dim ? 0.01 : this.faint;
    pen.strokeStyle = pen.fillStyle = this.inks.ink;
    pen.lineWidth = strong ? 1.6 : 1;
    pen.beginPath();
    pen.moveTo(x - 1, from);
    pen.bezierCurveTo(x - 10, from, x - 10, to, x, to);
    pen.stroke();
    if (strong) {
      pen.beginPath();
      pen.moveTo(x + 1, to);
      pen.lineTo(x - 6, to - 4);
      pen.lineTo(x - 6, to + 4);
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
  }

  under(event) {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    if (x < GUTTER) return null;
    const lane = this.lanes.find((each) => y >= each.top && y <= each.top + each.pixels);
    if (!lane || lane.isFolded) return null;
    const reach = 2;
    return lane.storages.find((each) => {
      const upper = this.upper(lane, each);
      return y >= upper && y <= upper + Math.max(each.height * lane.scale, 1) &&
        x >= view.x(each.born, width) - reach && x <= view.x(each.end, width) + reach;
    });
  }

  fold(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const y = event.clientY - top;
    const lane = this.lanes.find((each) => each.isFolded && y >= each.top && y < each.top + each.pixels);
    return lane && event.clientX - left >= GUTTER ? lane.folds[Math.floor((y - lane.top) / FOLD)] : undefined;
  }

  point(event) {
    const found = event.buttons ? null : this.under(event);
    this.canvas.style.cursor = found || this.fold(event) ? "pointer" : "grab";
    if (!found) return hint(null);
    const lived = `${moment(found.born)} to ${found.isFreed ? moment(found.end) : "the end"}`;
    hint(event, el("b", {}, found.title), el("div", {}, device(found.device), size(found.bytes)),
      el("div", {}, `${found.dtype} ${found.shape}`), el("div", {}, lived),
      found.before ? el("div", {}, "from ", device(found.before.device)) : "",
      place(found.events.find((each) => each.site)?.site) || "");
  }
}

// Gives each storage a place that is free as long as it lives, the lowest one that has room.
function stacked(storages) {
  const changes = storages.flatMap((each) => [[each.born, 1, each], [each.end, 0, each]]);
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1] || b[2].bytes - a[2].bytes);
  let free = [[0, Infinity]];
  let most = 0;
  for (const [, begins, storage] of changes) {
    if (begins) {
      const gap = free.find(([from, to]) => to - from >= storage.height);
      storage.y = gap[0];
      gap[0] += storage.height;
      most = Math.max(most, gap[0]);
    } else if (storage.y !== undefined) {
      free.push([storage.y, storage.y + storage.height]);
      free.sort((a, b) => a[0] - b[0]);
      free = free.reduce((kept, gap) => {
        const last = kept.at(-1);
        if (last && last[1] >= gap[0]) last[1] = Math.max(last[1], gap[1]);
        else if (gap[1] > gap[0]) kept.push(gap);
        return kept;
      }, []);
    }
  }
  return most;
}
