// The run, from the numbers the page holds.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.texts[number] ?? "";
const ENDS_BADLY = new Set(["error", "meet", "unwritten", "pending"]);
const WITHOUT_MEMORY = new Set(["meta", "disk"]);
const hasMemory = (device) => !WITHOUT_MEMORY.has(device.split(" ")[0]);

class Run {
  constructor() {
    Object.assign(this, data.run);
    this.folder = this.facts.cwd || "";
    this.seconds = Math.max(this.seconds, 1e-6);
    this.sites = data.sites.map(([file, line, name, source]) => ({
      file: text(file), line, function: text(name), source: text(source),
      short: shortened(text(file), this.folder),
    }));
    this.devices = data.devices;
    const real = this.devices.map((each) => each.name).filter(hasMemory).sort();
    this.colours = new Map(real.map((name, place) => [name, `c${place % 8}`]));
    this.phases = data.phases.map(([name, where, start, end, depth, ended]) => (
      { name: text(name), where: text(where), start, end, depth, ended }));
    this.storages = data.storages.map((row, place) => new Storage(row, place));
    for (const each of this.storages) {
      each.before = this.storages[each.beforePlace];
      if (each.before) each.before.after.push(each);
    }
    this.byKey = new Map(this.storages.map((each) => [each.key, each]));
    this.moves = data.moves.map(([site, by, op, from, to, number, bytes]) => ({
      site: this.sites[site], by: this.sites[by], op: text(op), from: text(from), to: text(to),
      number, bytes,
    }));
  }

  colour(name) {
    return this.colours.get(name) || this.colours.get(`${name} (rank 0)`) || "ghostly";
  }

  paint(name) {
    const colour = this.colours.get(name);
    const variable = colour ? `--d${colour.slice(1)}` : "--ghost";
    return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  }
}

class Storage {
  constructor(row, place) {
    const [process, number, name, device, bytes, dtype, shape, type, born, freed, before, amount, events] = row;
    Object.assign(this, { number, bytes, born, place, amount, after: [], beforePlace: before });
    this.process = data.processes[process];
    this.key = `${this.process}:${number}`;
    this.device = text(device);
    this.dtype = text(dtype);
    this.shape = text(shape) || "scalar";
    this.type = text(type);
    this.name = text(name);
    this.title = this.name || [this.type, this.dtype || "bytes", this.shape].filter(Boolean).join(" ");
    this.isFreed = freed >= 0;
    this.end = this.isFreed ? freed : data.run.seconds;
    this.rows = events;
  }

  get events() {
    return this.rows.map(([micros, kind, what, site, by, thread, phase, other]) => ({
      time: micros / 1e6, did: data.kinds[kind], what: text(what), site: run.sites[site],
      by: run.sites[by], thread: text(thread), phase: text(phase), other: run.storages[other],
    }));
  }

  get haystack() {
    if (this.hay === undefined) {
      const found = new Set([this.name, this.device, this.dtype, this.shape, this.type, this.process, this.key]);
      for (const event of this.events) {
        for (const site of [event.site, event.by]) {
          if (site) found.add(`${site.file}:${site.line} ${site.function}`);
        }
        found.add(event.phase).add(event.did);
      }
      this.hay = [...found].join("\n").toLowerCase();
    }
    return this.hay;
  }

  fits(words) {
    return words.every((word) => this.haystack.includes(word));
  }

  // From the first storage whose bytes it goes on with to itself.
  get line() {
    const found = [this];
    while (found[0].before && !found.includes(found[0].before)) found.unshift(found[0].before);
    return found;
  }
}

let run;
