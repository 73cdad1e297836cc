import * as fs from "node:fs";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { findProgram } from "./find";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("tensortrail.restart", restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("tensortrail.path")) await restart();
      else if (event.affectsConfiguration("tensortrail")) await configure();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}

async function start(): Promise<void> {
  const found = findProgram({
    setting: vscode.workspace.getConfiguration("tensortrail").get("path", ""),
    folders: (vscode.workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath),
    searchPath: process.env.PATH ?? "",
    windows: process.platform === "win32",
    isProgram,
  });
  if ("problem" in found) {
    const settings = "Open Settings";
    // not awaited: whoever does not answer keeps the editor waiting for nothing
    void vscode.window.showErrorMessage(`tensortrail: ${found.problem}`, settings).then((chosen) => {
      if (chosen === settings)
        void vscode.commands.executeCommand("workbench.action.openSettings", "tensortrail.path");
    });
    return;
  }
  client = new LanguageClient(
    "tensortrail",
    "tensortrail",
    { command: found.program, args: ["server"] },
    {
      documentSelector: [
        { scheme: "file", language: "python" },
        { scheme: "untitled", language: "python" },
        { scheme: "vscode-notebook-cell", language: "python" }, // hover and fixes; texts of cells come with notebooks
      ],
      initializationOptions: settings(),
    },
  );
  await client.start();
}

async function stop(): Promise<void> {
  await client?.stop();
  client = undefined;
}

async function configure(): Promise<void> {
  await client?.sendNotification("workspace/didChangeConfiguration", {
    settings: { tensortrail: settings() },
  });
}

function settings(): Record<string, unknown> {
  const known = vscode.workspace.getConfiguration("tensortrail");
  const names = ["select", "extendSelect", "ignore", "exclude", "config", "baseline", "inlayHints", "fadeUnrecorded"];
  return Object.fromEntries(names.map((name) => [name, known.get(name)]));
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
