// The parts of the page that are text and tables.

function overview() {
  const { argv, started, seconds, events, facts, conditions, failures, trouble, ends, dropped } = run;
  const fact = (value, what) => el("span", {}, el("b", {}, value), ` ${what}`);
  const notices = [...trouble, ...ends, ...data.sharedDevices];
  const lost = Object.entries(dropped).map(([kind, number]) => count(number, `${kind} event`));
  if (lost.length) notices.push(`The size limit was reached: ${lost.join(", ")} are not in the trail.`);
  return el("section", { id: "run", "aria-label": "The run" },
    el("h1", {}, argv.join(" ") || "A recorded run"),
    el("div", { class: "facts" },
      failures.map((each) => el("span", { class: "pill error" }, each)),
      el("span", {}, started), fact(duration(seconds), "long"),
      fact(events.toLocaleString("en"), events === 1 ? "event" : "events"),
      fact(data.processes.length, data.processes.length === 1 ? "process" : "processes"),
      fact(data.storagesInAll.toLocaleString("en"), data.storagesInAll === 1 ? "storage" : "storages"),
      facts.torch && el("span", {}, `torch ${facts.torch}`),
      facts.python && el("span", {}, `Python ${facts.python}`),
      conditions.map((each) => el("span", {}, each))),
    notices.map((each) => el("p", { class: "notice" }, each)),
    el("div", { class: "devices" }, run.devices.map(deviceCard)));
}

function deviceCard(use) {
  const ghostly = !hasMemory(use.name);
  return el("div", { class: `card device ${run.colour(use.name)}` },
    device(use.name),
    el("dl", {},
      el("dt", {}, ghostly ? "at most, without memory" : "at most"), el("dd", { class: "big" }, size(use.peak)),
      el("dt", {}, "reached after"), el("dd", {}, moment(use.peakTime)),
      el("dt", {}, "alive at the end"), el("dd", {}, `${size(use.bytes)} in ${use.alive.toLocaleString("en")}`)));
}

function findings() {
  const nothing = run.failures.length
    ? "The rules found no reason for this failure in what was recorded."
    : "The rules found nothing wrong in this run.";
  const lead = data.findings.length ? "" : nothing;
  return section("findings", "Findings", data.findings.length ? count(data.findings.length, "finding") : "none", lead,
    el("div", { class: "stack" }, data.findings.map(findingCard)));
}

// Its cause, what to change, and how it came to be; then the exceptions at its line.
function findingCard(each, number) {
  const site = run.sites[each.site];
  const isHere = (other) => other && site && other.file === site.file && other.line === site.line;
  const steps = each.trail.map(([place_, message]) => el("li", {},
    el("div", { class: "what" }, prose(message)), place(run.sites[place_]), isHere(run.sites[place_]) ? null : source(run.sites[place_])));
  const evidence = Object.entries(each.evidence);
  const raised = data.troubles.filter((trouble) => trouble.finding === number);
  return el("article", { class: "card finding" },
    el("header", {}, el("span", { class: `pill ${each.severity}` }, each.severity),
      el("h3", {}, each.name), el("code", { class: "soft" }, each.code)),
    el("p", { class: "message" }, prose(each.message)), place(site), source(site),
    each.fixes.map((fix) => el("div", { class: "change" }, el("h4", {}, "Change"),
      el("p", {}, prose(fix.what)), fix.preview && diff(fix.preview))),
    each.settings.map(([library, name, value, why, where]) => el("div", { class: "change" }, el("h4", {}, "Setting"),
      el("p", {}, el("code", {}, `${name}=${value}`), ` of ${library}`, where && `, in ${where}`, why && [": ", prose(why)]))),
    steps.length > 0 && el("div", { class: "change" }, el("h4", {}, "Trail"), el("ol", { class: "events" }, steps)),
    raised.map((trouble) => trouble.filled.length > 0 && filled(trouble)),
    raised.length > 0 && el("details", {}, el("summary", {}, "What was raised here, and its operands"),
      raised.map(troubleBody)),
    (evidence.length > 0 || each.confidence !== "high") && el("details", {}, el("summary", {}, "Evidence"), el("ul", {},
      [["confidence", each.confidence], ...evidence].map(([key, value]) => el("li", { class: "small" }, `${key}: ${value}`)))),
    each.siblings.length > 0 && el("details", {}, el("summary", {}, `The same at ${count(each.siblings.length, "other place")}`),
      each.siblings.map((place_) => place(run.sites[place_]))));
}

// What lay on the device when it gave no more memory.
function filled(trouble) {
  const heads = ["bytes", "kind", "what", "made at", "grows"];
  return el("div", { class: "change scroll" }, el("h4", {}, "What filled the device"), el("table", {},
    el("thead", {}, el("tr", {}, heads.map((each) => el("th", { class: each === "bytes" ? "number" : "" }, each)))),
    el("tbody", {}, trouble.filled.map((cells) => el("tr", {},
      cells.map((cell, column) => el("td", { class: column ? "" : "number" }, column === 1 ? prose(cell) : cell)))))));
}

function diff(preview) {
  const kind = (line) => (/^(---|\+\+\+)/.test(line) ? "" : { "+": "plus", "-": "minus" }[line[0]] || "");
  return el("pre", {}, preview.trimEnd().split("\n").map((line) => el("span", { class: kind(line) }, `${line}\n`)));
}

// Those that no finding stands for: with the others they are in the findings above.
function troubles() {
  const left = data.troubles.filter((each) => each.finding < 0);
  if (!left.length) return null;
  const errors = left.filter((each) => each.did === "error").length;
  const amounts = [errors && count(errors, "error"), left.length > errors && count(left.length - errors, "operation on mixed devices", "operations on mixed devices")];
  const told = data.findings.length ? "Those at the lines of findings are shown there." : "";
  return section("troubles", data.findings.length ? "Other errors and operations on mixed devices" : "Errors and operations on mixed devices",
    amounts.filter(Boolean).join(", "), `What was raised, and operations that were given tensors on different devices. ${told}`,
    el("div", { class: "stack" }, left.map((each) => el("article", { class: `card trouble ${each.did === "error" ? "error" : ""}` },
      troubleBody(each), each.filled.length > 0 && filled(each)))));
}

function troubleBody(each) {
  const isError = each.did === "error";
  const devices = [...new Set(each.operands.map((operand) => operand.device))];
  const thread = each.where.split(", ").filter((name) => !["main", "MainThread"].includes(name)).join(", ");
  const at = run.sites[each.site];
  return el("div", { class: "raised" },
    el("header", {}, el("span", { class: `pill ${isError ? "error" : "warning"}` }, isError ? each.type || "error" : "mixed devices"),
      el("h3", { class: "mono" }, each.op), devices.map((name) => device(name ?? "?")),
      el("span", { class: "soft small" }, [`after ${moment(each.time)}`, each.phase && `in ${each.phase}`, thread].filter(Boolean).join(" · "))),
    each.message && el("p", {}, each.filled.length ? each.message.split("\n")[0] : each.message),
    each.finding < 0 && [place(at), source(at)], place(run.sites[each.by], "by"),
    each.operands.length > 0 && el("div", { class: "scroll" }, el("table", { class: "operands", "aria-label": "Operands" },
      el("tbody", {}, each.operands.map((operand) => {
        const storage = run.storages[operand.place];
        const shape = Array.isArray(operand.shape) ? operand.shape.join("x") || "scalar" : "";
        return el("tr", {}, el("td", { class: "soft mono" }, operand.arg ?? ""),
          el("td", {}, storage ? link(storage, operand.name || storage.title) : operand.name || "unnamed"),
          el("td", {}, device(operand.device ?? "?")),
          el("td", { class: "mono" }, [operand.type, operand.dtype, shape].filter(Boolean).join(" ")));
      })))));
}

// As the text report has it: the entries of the device map, and what came of them.
function placements() {
  if (!data.placements.length) return null;
  const row = ([modules, declared, lies, bytes, hooks]) => el("tr", {}, el("td", { class: "mono" }, modules),
    el("td", {}, device(declared)), el("td", {}, lies ? lies.split(", ").map((name) => device(name)) : "-"),
    el("td", { class: "number" }, bytes ? size(bytes) : ""), el("td", { class: "soft" }, hooks));
  return section("placements", "Placement", count(data.placements.length, "model"),
    "Where the device map puts the modules of a model, where they are, and which hooks bring their weights.",
    el("div", { class: "stack" }, data.placements.map((each) => el("div", { class: "card placed" },
      el("h3", {}, each.model), place(run.sites[each.site]),
      each.differing.map((text) => el("p", { class: "notice" }, prose(text))),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {},
        ["modules", "declared", "is on", "bytes", "brought by"].map((head) => el("th", { class: head === "bytes" ? "number" : "" }, head)))),
        el("tbody", {}, each.rows.map(row))))))));
}

function ranks() {
  if (data.ofRanks) return allRanks(data.ofRanks);
  if (!data.differences.length) return null;
  const row = ([site, what, those, others, times]) => el("tr", {},
    el("td", {}, those), el("td", { class: "soft" }, others), el("td", {}, place(run.sites[site]), source(run.sites[site])),
    el("td", {}, prose(what), times > 1 && el("span", { class: "soft" }, ` and ${times - 1} more`)));
  return section("ranks", "Where ranks differ", count(data.differences.length, "place"),
    "What only some of the ranks did at a line, in order of time. One rank saving or printing alone is normal; one rank moving a tensor alone usually is a bug.",
    el("div", { class: "card scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["only", "not", "your line", "what"].map((each) => el("th", {}, each)))),
      el("tbody", {}, data.differences.map(row)))));
}

// Of many ranks what they share is a line, and whoever differs stands in it.
function allRanks({ count: number, shown, sections }) {
  return section("ranks", "All ranks", count(number, "rank"),
    `The totals of all ranks. The storages, moves and devices below are those of ${shown}.`,
    el("div", { class: "stack" }, sections.map(([title, lines]) => el("div", { class: "card" },
      el("h3", {}, title), el("ul", {}, lines.map((line) => el("li", {}, prose(line))))))));
}

function moves() {
  if (!run.moves.length) return null;
  const most = run.moves[0].bytes || 1;
  const body = el("tbody");
  const row = (move) => el("tr", {},
    el("td", {}, place(move.site) || el("span", { class: "soft" }, "no line known"), source(move.site),
      move.site && el("button", { type: "button", class: "link small", on: { click: () => lookFor(move.site) } }, "storages of this line")),
    el("td", {}, place(move.by), el("code", { class: "soft" }, move.op)),
    el("td", {}, flow(move.from, move.to)),
    el("td", { class: "number" }, move.number.toLocaleString("en")),
    el("td", { class: "number" }, size(move.bytes), bar(move.bytes / most, run.colour(move.to))));
  const more = inPortions(run.moves, 12, row, (each) => body.append(each));
  const left = data.moveLines > run.moves.length ? `, the ${run.moves.length} with most bytes are here` : "";
  return section("moves", "Who moved what", count(data.moveLines, "line") + left,
    "Moves between devices, by your line and by the library's line below it, most bytes first.",
    el("div", { class: "card scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "your line"), el("th", {}, "through"), el("th", {}, "from, to"),
        el("th", { class: "number" }, "moves"), el("th", { class: "number" }, "bytes"))), body), more));
}

function alive() {
  const holding = run.devices.filter((use) => use.largest.length);
  if (!holding.length) return null;
  return section("alive", "Alive at the end", "", "Storages that were not freed, the largest first.",
    el("div", { class: "alive" }, holding.map((use) => {
      const most = run.storages[use.largest[0]].bytes || 1;
      const list = el("ul");
      const item = (number) => {
        const each = run.storages[number];
        return el("li", {}, link(each), el("span", { class: "number" }, size(each.bytes)),
          bar(each.bytes / most, run.colour(use.name)));
      };
      const more = inPortions(use.largest, 8, item, (each) => list.append(each));
      return el("div", { class: "card" },
        el("h3", {}, device(use.name), el("span", { class: "soft small" }, `${size(use.bytes)} in ${count(use.alive, "storage")}`)),
        list, more);
    })));
}
