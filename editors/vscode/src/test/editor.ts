/** An editor in place of VS Code: as much of its interface as the client library asks of one.
 *
 * What the extension registers (diagnostics, providers, commands) is kept, for tests to ask. */

import Module = require("node:module");
import { fileURLToPath, pathToFileURL } from "node:url";

class Uri {
  constructor(readonly text: string) {}
  static parse = (text: string) => new Uri(text);
  static file = (path: string) => new Uri(pathToFileURL(path).href);
  get scheme() { return this.text.split(":")[0]; }
  get fsPath() { return fileURLToPath(this.text); }
  toString() { return this.text; }
}
class Position {
  constructor(readonly line: number, readonly character: number) {}
}
class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(...[line, character, endLine, endCharacter]: [number, number, number, number]) {
    this.start = new Position(line, character);
    this.end = new Position(endLine, endCharacter);
  }
}
class Diagnostic {
  code?: { value: string } | string;
  constructor(readonly range: Range, readonly message: string, readonly severity: number) {}
}
class CodeAction {
  edit?: WorkspaceEdit;
  constructor(readonly title: string, readonly kind: unknown) {}
}
class TextEdit {
  constructor(readonly range: Range, readonly newText: string) {}
}
class WorkspaceEdit {
  readonly all: [Uri, TextEdit[]][] = [];
  set(uri: Uri, edits: TextEdit[]) { this.all.push([uri, edits]); }
  replace(uri: Uri, range: Range, text: string) { this.all.push([uri, [new TextEdit(range, text)]]); }
}
class MarkdownString {
  constructor(readonly value = "") {}
}
class Hover {
  constructor(readonly contents: MarkdownString[] | MarkdownString) {}
}
class CodeActionKind {
  constructor(readonly value: string) {}
  static Empty = new CodeActionKind("");
  static QuickFix = new CodeActionKind("quickfix");
  append(part: string) { return new CodeActionKind(this.value ? `${this.value}.${part}` : part); }
  contains(other: CodeActionKind) { return `${other.value}.`.startsWith(`${this.value}.`); }
}
class Disposable {
  constructor(readonly dispose: () => void = () => {}) {}
  static from = (...all: Disposable[]) => new Disposable(() => all.forEach((each) => each.dispose()));
}
class EventEmitter<T> {
  private readonly told = new Set<(value: T) => unknown>();
  event = (listener: (value: T) => unknown, self?: unknown) => {
    const bound = self === undefined ? listener : listener.bind(self);
    this.told.add(bound);
    return new Disposable(() => this.told.delete(bound));
  };
  fire(value: T) { this.told.forEach((each) => each(value)); }
  dispose() { this.told.clear(); }
}
class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
  cancel() {}
  dispose() {}
}

export class Document {
  version = 1;
  readonly languageId = "python";
  readonly uri: Uri;
  constructor(path: string, private text: string) { this.uri = Uri.file(path); }
  getText() { return this.text; }
  get isClosed() { return false; }
  edit({ range, newText }: TextEdit) {
    const at = ({ line, character }: Position) =>
      this.text.split("\n").slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + character;
    this.text = this.text.slice(0, at(range.start)) + newText + this.text.slice(at(range.end));
    this.version += 1;
  }
}

type Provider = Record<string, (...given: unknown[]) => Promise<any>>;

export class Editor {
  readonly documents: Document[] = [];
  readonly shown = new Map<string, Diagnostic[]>();
  readonly providers = new Map<string, Provider>();
  /** Of the documents that each provider is asked about. */
  readonly schemes = new Map<string, (string | undefined)[]>();
  readonly commands = new Map<string, () => Promise<void>>();
  readonly errors: string[] = [];
  private readonly opened = new EventEmitter<Document>();
  private readonly changed = new EventEmitter<unknown>();
  private readonly configured = new EventEmitter<unknown>();

  constructor(readonly folder: string, readonly settings: Record<string, unknown>) {}

  open(document: Document) {
    this.documents.push(document);
    this.opened.fire(document);
  }

  edit(document: Document, edit: TextEdit) {
    document.edit(edit);
    const change = { range: edit.range, text: edit.newText };
    this.changed.fire({ document, contentChanges: [change], reason: undefined });
  }

  configure(name: string, value: unknown) {
    this.settings[name] = value;
    this.configured.fire({ affectsConfiguration: (asked: string) => `tensortrail.${name}`.startsWith(asked) });
  }

  /** The diagnostics of a document, once they are as asked. */
  async diagnostics(document: Document, wanted: (found: Diagnostic[]) => boolean): Promise<Diagnostic[]> {
    for (const began = Date.now(); Date.now() - began < 30_000; await new Promise((next) => setTimeout(next, 20))) {
      const found = this.shown.get(document.uri.toString());
      if (found !== undefined && wanted(found)) return found;
    }
    throw new Error(`never shown; last: ${JSON.stringify([...this.shown])}; errors: ${this.errors}`);
  }

  /** From now on `require("vscode")` gives this editor. */
  install() {
    const loader = Module as unknown as { _load: (name: string, ...rest: unknown[]) => unknown };
    const load = loader._load;
    const offered = this.offered();
    loader._load = (name, ...rest) => (name === "vscode" ? offered : load.call(loader, name, ...rest));
  }

  private register = (kind: string) => (selector: { scheme?: string }[], provider: Provider) => {
    this.providers.set(kind, provider);
    this.schemes.set(kind, selector.map((each) => each.scheme));
    return new Disposable();
  };

  private offered(): object {
    const never = () => new Disposable();
    const failed = async (text: string) => void this.errors.push(text);
    const log = { error: never, append: never, appendLine: never, show: never, dispose: never };
    return orAClass({
      Uri, Position, Range, Diagnostic, CodeAction, TextEdit, WorkspaceEdit, MarkdownString, Hover,
      CodeActionKind, Disposable, EventEmitter, CancellationTokenSource,
      CancellationError: class extends Error {},
      DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
      DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
      version: "1.91.0",
      env: { language: "en", appName: "tests" },
      commands: {
        registerCommand: (name: string, does: () => Promise<void>) => {
          this.commands.set(name, does);
          return new Disposable();
        },
      },
      window: orNothing({
        showErrorMessage: failed, createOutputChannel: () => log,
        tabGroups: { all: [], onDidChangeTabs: never },
      }),
      workspace: orNothing({
        textDocuments: this.documents,
        workspaceFolders: [{ uri: Uri.file(this.folder), name: "tests", index: 0 }],
        getConfiguration: () => ({ get: (name: string, otherwise?: unknown) => this.settings[name] ?? otherwise }),
        onDidOpenTextDocument: this.opened.event,
        onDidChangeTextDocument: this.changed.event,
        onDidChangeConfiguration: this.configured.event,
        notebookDocuments: [],
      }),
      languages: orNothing({
        match: (selector: { language?: string }[]) => (selector.some((each) => each.language === "python") ? 10 : 0),
        createDiagnosticCollection: () => ({
          set: (uri: Uri, found: Diagnostic[] = []) => this.shown.set(uri.toString(), found),
          delete: (uri: Uri) => this.shown.delete(uri.toString()),
          clear: () => this.shown.clear(),
          dispose: never,
        }),
        registerCodeActionsProvider: this.register("actions"),
        registerHoverProvider: this.register("hover"),
        registerCodeLensProvider: this.register("lenses"),
        registerInlayHintsProvider: this.register("hints"),
      }),
    });
  }
}

/** Names that are not there are events or functions that nobody asks anything of. */
function orNothing(known: object): object {
  return new Proxy(known, { get: (at, name) => Reflect.get(at, name) ?? (() => new Disposable()) });
}

/** Names that are not there are classes, for the library to extend. */
function orAClass(known: object): object {
  const made = new Map<PropertyKey, unknown>();
  return new Proxy(known, {
    get(at, name) {
      if (name in at || typeof name === "symbol" || name === "__esModule") return Reflect.get(at, name);
      if (!made.has(name)) made.set(name, class {});
      return made.get(name);
    },
  });
}
