import * as assert from "node:assert";
import { test } from "node:test";
import { findProgram } from "../find";

function find(programs: string[], given: { setting?: string; searchPath?: string } = {}) {
  return findProgram({
    setting: given.setting ?? "",
    folders: ["/home/ada/a", "/home/ada/b"],
    searchPath: given.searchPath ?? "/usr/bin:relative:/opt/bin",
    windows: false,
    isProgram: (file) => programs.includes(file),
  });
}

test("the setting wins, also against what is there", () => {
  const all = ["/home/ada/a/tools/tt", "/home/ada/a/.venv/bin/tensortrail"];
  assert.deepStrictEqual(find(all, { setting: "/home/ada/a/tools/tt" }), { program: all[0] });
  assert.deepStrictEqual(find(all, { setting: "tools/tt" }), { program: all[0] });
  assert.deepStrictEqual(find(all, { setting: "${workspaceFolder}/tools/tt" }), { program: all[0] });
});

test("a setting that names no program is said, and nothing else is started", () => {
  const found = find(["/home/ada/a/.venv/bin/tensortrail"], { setting: "/nowhere" });
  assert.match("problem" in found ? found.problem : "", /^tensortrail.path names \/nowhere/);
});

test("the environment of a folder comes before PATH", () => {
  const all = ["/usr/bin/tensortrail", "/home/ada/b/venv/bin/tensortrail"];
  assert.deepStrictEqual(find(all), { program: all[1] });
  assert.deepStrictEqual(find(all.slice(0, 1)), { program: all[0] });
});

test("what PATH names from the current folder is never started", () => {
  assert.ok("problem" in find(["relative/tensortrail"]));
});

test("nothing found is said, with what to do", () => {
  const found = find([]);
  assert.match("problem" in found ? found.problem : "", /Install it .* or set tensortrail.path/);
});
