/** The extension with the real client library and the real server (TENSORTRAIL). */

import * as assert from "node:assert";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { Document, Editor } from "./editor";

const program = process.env.TENSORTRAIL;
const risky = "def f(t):\n    '𝄞'; return t.weight.device == 'meta'\n";

test("an editor shows the finding, its story and its fix", { skip: !program && "TENSORTRAIL is not set" }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tensortrail-"));
  const editor = new Editor(folder, { path: "/nowhere" });
  editor.install();
  const extension = require("../extension") as typeof import("../extension");
  const context = { subscriptions: [] };
  await extension.activate(context as any);
  assert.match(editor.errors[0], /^tensortrail: tensortrail.path names \/nowhere/);

  editor.settings.path = program;
  await editor.commands.get("tensortrail.restart")?.();
  const document = new Document(path.join(folder, "a.py"), risky);
  editor.open(document);
  const [found] = await editor.diagnostics(document, (each) => each.length === 1);
  assert.strictEqual(typeof found.code === "object" ? found.code.value : found.code, "DEV501");
  assert.deepStrictEqual([found.range.start.line, found.range.start.character], [1, 17]);

  for (const kind of ["hover", "actions"])
    assert.deepStrictEqual(editor.schemes.get(kind), ["file", "untitled", "vscode-notebook-cell"], kind);

  const token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };
  const hover = await editor.providers.get("hover")?.provideHover(document, found.range.start, token);
  const told = [hover.contents].flat().map((each: { value: string }) => each.value).join("");
  assert.match(told, /DEV501/);

  const asked = { diagnostics: [found], only: undefined, triggerKind: 1 };
  const actions = await editor.providers.get("actions")?.provideCodeActions(document, found.range, asked, token);
  assert.strictEqual(actions[0].title, "DEV501: compare the type (unsafe)");
  const [[uri, [edit]]] = actions[0].edit.all;
  assert.strictEqual(uri.toString(), document.uri.toString());

  editor.configure("ignore", ["DEV501"]);
  await editor.diagnostics(document, (each) => each.length === 0);
  editor.configure("ignore", []);
  await editor.diagnostics(document, (each) => each.length === 1);
  editor.edit(document, edit);
  assert.strictEqual(document.getText(), risky.replace(".device", ".device.type"));
  await editor.diagnostics(document, (each) => each.length === 0);
  await extension.deactivate();
  assert.deepStrictEqual(editor.errors.slice(1), []);
});
