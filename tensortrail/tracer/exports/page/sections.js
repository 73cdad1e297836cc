// The parts of the page that are text and tables.

function overview() {
  const { argv, started, seconds, events, facts, trouble, unended, dropped } = run;
  const fact = (value, what) => el("span", {}, el("b", {}, value), ` ${what}`);
  const notices = [...trouble, ...unended, ...data.sharedDevices];
  const lost = Object.entries(dropped).map(([kind, number]) => count(number, `${kind} event`));
  if (lost.length) notices.push(`The size limit was reached: ${lost.join(", ")} are not in the trail.`);
  return el("section", { id: "run", "aria-label": "The run" },
    el("h1", {}, argv.join(" ") || "A recorded run"),
    el("div", { class: "facts" },
      el("span", {}, started), fact(duration(seconds), "long"),
      fact(events.toLocaleString("en"), events === 1 ? "event" : "events"),
      fact(data.processes.length, data.processes.length === 1 ? "process" : "processes"),
      fact(data.storagesInAll.toLocaleString("en"), "storages"),
      facts.torch && el("span", {}, `torch ${facts.torch}`),
      facts.python && el("span", {}, `Python ${facts.python}`)),
    notices.map((each) => el("p", { class: "notice" }, each)),
    el("div", { class: "devices" }, run.devices.map(deviceCard)));
}

function deviceCard(use) {
  const ghostly = !hasMemory(use.name);
  return el("div", { class: `card device ${run.colour(use.name)}` },
    device(use.name),
    el("dl", {},
      el("dt", {}, ghostly ? "pretended at most" : "at most"), el("dd", { class: "big" }, size(use.peak)),
      el("dt", {}, "reached after"), el("dd", {}, moment(use.peakTime)),
      el("dt", {}, "alive at the end"), el("dd", {}, `${size(use.bytes)} in ${use.alive.toLocaleString("en")}`)));
}

function findings() {
  if (!data.findings.length) return null;
  return section("findings", "Findings", count(data.findings.length, "finding"), "",
    el("div", { class: "stack" }, data.findings.map(findingCard)));
}

function findingCard(each) {
  const site = run.sites[each.site];
  const steps = each.trail.map(([number, message]) => el("li", {},
    el("div", { class: "what" }, prose(message)), place(run.sites[number]), source(run.sites[number])));
  const rows = each.settings.map(([library, name, value, why, where]) => el("li", {},
    el("code", {}, `${name} = ${value}`), ` (${library})`, why && [": ", prose(why)],
    where && el("span", { class: "soft" }, `, in ${where}`)));
  const evidence = Object.entries(each.evidence);
  return el("article", { class: "card finding" },
    el("header", {}, el("span", { class: `pill ${each.severity}` }, each.severity),
      el("h3", {}, each.name), el("code", { class: "soft" }, each.code),
      el("span", { class: "soft small" }, `${each.confidence} confidence`)),
    el("p", { class: "message" }, prose(each.message)), place(site), source(site),
    steps.length > 0 && el("details", {}, el("summary", {}, `Trail, ${count(steps.length, "step")}`),
      el("ol", { class: "events" }, steps)),
    each.fixes.length > 0 && el("details", { open: true }, el("summary", {}, "Fix"), each.fixes.map((fix) =>
      el("div", {}, el("p", {}, prose(fix.what), " ", el("span", { class: "pill" }, fix.safety)), diff(fix.preview)))),
    rows.length > 0 && el("details", { open: true }, el("summary", {}, "Settings"), el("ul", {}, rows)),
    evidence.length > 0 && el("details", {}, el("summary", {}, "Evidence"), el("ul", {},
      evidence.map(([key, value]) => el("li", { class: "small" }, `${key}: ${value}`)))),
    each.siblings.length > 0 && el("details", {}, el("summary", {}, `The same at ${count(each.siblings.length, "other place")}`),
      each.siblings.map((number) => place(run.sites[number]))));
}

function diff(preview) {
  const kind = (line) => ({ "+": "plus", "-": "minus" })[line[0]] || "";
  return el("pre", {}, preview.split("\n").map((line) => el("span", { class: kind(line) }, `${line}\n`)));
}

function troubles() {
  if (!data.troubles.length) return null;
  const amounts = [data.errors && count(data.errors, "error"), data.meetings && count(data.meetings, "mixed meeting")];
  const shown = data.troubles.length < data.errors + data.meetings ? `, the first ${data.troubles.length} are here` : "";
  return section("troubles", "Errors and mixed meetings", amounts.filter(Boolean).join(", ") + shown,
    "Where operands on different devices met, and what was raised.",
    el("div", { class: "stack" }, data.troubles.map(troubleCard)));
}

function troubleCard(each) {
  const isError = each.did === "error";
  const devices = [...new Set(each.operands.map((operand) => operand.device))];
  return el("article", { class: `card trouble ${isError ? "error" : ""}` },
    el("header", {}, el("span", { class: `pill ${isError ? "error" : "warning"}` }, isError ? each.type || "error" : "mixed meeting"),
      el("h3", { class: "mono" }, each.op), devices.map((name) => device(name ?? "?")),
      el("span", { class: "soft small" }, [moment(each.time), each.phase, each.where].filter(Boolean).join(" · "))),
    each.message && el("p", {}, each.message), place(run.sites[each.site]), source(run.sites[each.site]),
    place(run.sites[each.by], "by"),
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

function ranks() {
  if (!data.differences.length) return null;
  const row = ([site, what, those, others, times]) => el("tr", {},
    el("td", {}, those), el("td", { class: "soft" }, others), el("td", {}, place(run.sites[site]), source(run.sites[site])),
    el("td", {}, prose(what), times > 1 && el("span", { class: "soft" }, ` and ${times - 1} more`)));
  return section("ranks", "Where ranks differ", count(data.differences.length, "place"),
    "What only some of the ranks did at a line, in the order of time. A rank that saves or prints alone is well; one that moves a tensor alone is mostly not.",
    el("div", { class: "card scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["only", "not", "your line", "what"].map((each) => el("th", {}, each)))),
      el("tbody", {}, data.differences.map(row)))));
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
    "Moves between devices by the line that asked for them and the library that did it, most bytes first.",
    el("div", { class: "card scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "your line"), el("th", {}, "through"), el("th", {}, "from, to"),
        el("th", { class: "number" }, "moves"), el("th", { class: "number" }, "bytes"))), body), more));
}

function alive() {
  const holding = run.devices.filter((use) => use.largest.length);
  if (!holding.length) return null;
  return section("alive", "Alive at the end", "", "What was never seen freed, the largest first.",
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
