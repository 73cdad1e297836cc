"""Which damage mlx-model-doctor, weightlens, hf-mem and accelerate estimate-memory notice.

    pip install mlx-model-doctor==0.9.2 weightlens==0.3.0 hf-mem==0.5.6
    python -m benchmarks.checkpoint_peers        # a table in Markdown

A tool notices a damage if it ends with another exit code, or names another problem, than for the
whole checkpoint beside it. hf-mem reads from the Hub alone: it is given a server of this machine
that serves the folder. accelerate asks the Hub about the model first, and is given an answer;
what it reads then is the configuration in the folder."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.written import copy, write_all

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8,
          "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
          "vocab_size": 16}  # fmt: skip
HUB = "https://huggingface.co"
Told = tuple[int, frozenset[str]]


def ran(main: Callable[[], Any], *words: str) -> tuple[int, str]:
    """The command of a tool, in this process: torch is imported once."""
    out, before = StringIO(), sys.argv
    sys.argv = ["tool", *words]
    try:
        with redirect_stdout(out), redirect_stderr(StringIO()):
            code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        code = 1
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue()


def by_mlx_model_doctor(folder: Path) -> Told:
    main = import_module("mlx_model_doctor.cli").main
    code, out = ran(main, "check", "local", str(folder), "--format", "json")
    found = json.loads(out) if out.strip().startswith("{") else {}
    bad = {
        f"{each['check_id']}: {each['message'][:60]}"
        for each in found.get("results", [])
        if each["status"] in ("fail", "warn", "error")
    }
    return code, frozenset(bad)


def by_weightlens(folder: Path) -> Told:
    """It takes one file: the index where there is one, or else every weight file."""
    files = sorted(folder.glob("*.index.json")) or sorted(
        each for each in folder.iterdir() if each.suffix in (".safetensors", ".bin")
    )
    codes, words = 0, set[str]()
    for file in files:
        named = file
        if file.suffix == ".bin":  # it knows torch files by another ending
            named = file.with_suffix(".pth")
            named.write_bytes(file.read_bytes())
        code, out = ran(import_module("weightlens.cli").main, "analyze", str(named))
        codes |= code
        told = out.partition("Diagnostics (")[2].splitlines()[2:]
        words |= {line.strip()[:60] for line in told if line.strip()}
    return codes, frozenset(words)


def by_hf_mem(folder: Path) -> Told:
    run, cli = import_module("hf_mem.run"), import_module("hf_mem.cli")
    source = Path(str(run.__file__)).read_text(encoding="utf-8")
    with served(folder) as address:
        exec(compile(source.replace(HUB, address), "hf_mem/run.py", "exec"), run.__dict__)
        vars(cli)["arun"] = vars(run)["arun"]
        code, _ = ran(cli.main, "--model-id", "a/b")
    return code, frozenset()


def by_estimate_memory(folder: Path) -> Told:
    estimate = import_module("accelerate.commands.estimate")
    of_hub = SimpleNamespace(config=CONFIG, library_name="transformers", tags=[], siblings=[])
    vars(estimate)["verify_on_hub"] = lambda *names, **more: of_hub
    code, _ = ran(estimate.main, str(folder), "--library_name", "transformers")
    return code, frozenset()


PEERS: dict[str, Callable[[Path], Told]] = {
    "mlx-model-doctor": by_mlx_model_doctor,
    "weightlens": by_weightlens,
    "hf-mem": by_hf_mem,
    "accelerate estimate-memory": by_estimate_memory,
}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder as the Hub serves a repository: its tree, and ranges of its files."""

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/api/"):
                tree = [{"type": "file", "path": each.name} for each in folder.iterdir()]
                self._send(200, json.dumps(tree).encode())
                return
            file = folder / self.path.rpartition("/")[2]
            if not file.is_file():
                self._send(404, b"")
                return
            data, asked = file.read_bytes(), self.headers.get("Range", "")
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            part = data[int(begin) : int(end) + 1 if end else None] if asked else data
            self._send(206 if asked else 200, part)

        def _send(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    noticed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_all(place / "whole")
        for base in (place / "whole").iterdir():
            (base / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        bases = {each.base for each in DAMAGES}
        whole = {
            (name, base): judge(copy(place / "whole" / base, place / f"{base}-{name}"))
            for name, judge in PEERS.items()
            for base in bases
        }
        print("| damage | " + " | ".join(PEERS) + " |\n|" + " --- |" * (len(PEERS) + 1))
        for damage in DAMAGES:
            cells = []
            for name, judge in PEERS.items():
                damaged = copy(place / "whole" / damage.base, place / f"{damage.name}-{name}")
                damage.do(damaged)
                before = whole[name, damage.base]
                code, bad = judge(damaged)
                told = code != before[0] or bool(bad - before[1])
                noticed[name] += told
                cells.append("notices" if told else "-")
            words = damage.name.replace("_", " ")
            print(f"| {damage.base}: {words} | {' | '.join(cells)} |", flush=True)
    print(f"\nNoticed, of {len(DAMAGES)}: " + ", ".join(f"{n} {noticed[n]}" for n in PEERS) + ".")
    for (name, base), (code, bad) in whole.items():
        print(f"whole {base}, {name}: exit code {code}, {', '.join(sorted(bad)) or 'no problem'}")


if __name__ == "__main__":
    main()
