/** The library that the extension uses for the wire, against the real server (TENSORTRAIL). */

import * as assert from "node:assert";
import { spawn } from "node:child_process";
import { test } from "node:test";
import {
  createProtocolConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver-protocol/node";

const program = process.env.TENSORTRAIL;
const uri = "file:///tensortrail-test/a.py";
const text = "def f(t):\n    return t.weight.device == 'meta'\n";

test("findings come over the wire", { skip: !program && "TENSORTRAIL is not set" }, async () => {
  const server = spawn(program ?? "", ["server"], { stdio: ["pipe", "pipe", "inherit"] });
  const wire = createProtocolConnection(
    new StreamMessageReader(server.stdout),
    new StreamMessageWriter(server.stdin),
  );
  const published = new Promise<{ uri: string; diagnostics: { code: string }[] }>((resolve) => {
    wire.onNotification("textDocument/publishDiagnostics", resolve);
  });
  wire.listen();
  const answer: { serverInfo: { name: string } } = await wire.sendRequest("initialize", {
    processId: null,
    rootUri: null,
    capabilities: {},
  });
  assert.strictEqual(answer.serverInfo.name, "tensortrail");
  await wire.sendNotification("initialized", {});
  const textDocument = { uri, languageId: "python", version: 1, text };
  await wire.sendNotification("textDocument/didOpen", { textDocument });
  const found = await published;
  assert.deepStrictEqual(found.diagnostics.map((each) => each.code), ["DEV501"]);
  await wire.sendRequest("shutdown");
  await wire.sendNotification("exit");
  const code = await new Promise((resolve) => server.on("exit", resolve));
  assert.strictEqual(code, 0);
});
