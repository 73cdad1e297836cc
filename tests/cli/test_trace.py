"""A traced program is the program: compared with plain Python, byte for byte."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensortrail.cli.recorded_run import chosen
from tensortrail.rules import all_rules
from tests import warm
from tests.parts import first_of

pytestmark = pytest.mark.long

pytest.importorskip("torch")

FAILS = """
import torch
def fails(*_):
    return torch.ones(2, device="meta").tolist()
"""
PROGRAMS = {
    "exit with a code": "import sys; sys.exit(3)",
    "exit with a message": "import sys; sys.exit('bye')",
    "an exception": "raise ValueError('x')",
    "an interrupt": "raise KeyboardInterrupt",
    "os._exit": "import os; print('hi', flush=True); os._exit(7)",
    "exit handlers": "import atexit; atexit.register(print, 'bye'); print('hi')",
    "who it is": (
        "import sys; print(sys.argv, __name__, __file__, sys.path[0], __spec__, sorted(globals()))"
    ),
    "standard input": "import sys; print(sys.stdin.read().upper())",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "no Python": "def f(:\n pass",
    "pickling what it defines": (
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))), A.__module__)"
    ),
    "a thread that fails, and standard error closed": (
        "import sys, threading\ndef f(): 1/0\nthread = threading.Thread(target=f, name='t')\n"
        "thread.start(); thread.join(); sys.stderr.close(); print('end')"
    ),
    "its own excepthook": (
        "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1/0"
    ),
    "a thread that outlives it": (
        "import threading, time\ndef f():\n    time.sleep(.2); print('late')\n"
        "threading.Thread(target=f).start()\nprint('end')"
    ),
    "an executor nobody shut down": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "print(ThreadPoolExecutor(2).submit(lambda: 5).result())"
    ),
    "chained exceptions": (
        "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('outer') from e"
    ),
    "an exception of torch's": "import torch\ntorch.ones(2)[7]",
    "an exception inside a function of torch's": (
        "import torch\ntorch.nn.functional.group_norm(torch.ones(2, 3), 2)"
    ),
    "a forward call that torch tells of, and an exception inside a class of tensors": (
        "import copy, torch\nclass Own(torch.Tensor):\n    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return super().__torch_function__(func, types, args, kwargs or {})\n"
        "with torch.autograd.detect_anomaly():\n    try:\n"
        "        (torch.ones(1, requires_grad=True) * float('nan')).sum().backward()\n"
        "    except RuntimeError as error: print(error)\n"
        "copy.deepcopy(torch.ones(2).as_subclass(Own))"
    ),
    "spawned processes": (
        "import multiprocessing as mp\ndef f(x): return x * 2\n"
        "if __name__ == '__main__':\n    mp.set_start_method('spawn')\n"
        "    with mp.Pool(2) as pool: print(pool.map(f, [1, 2, 3]))"
    ),
    "a forked child that fails, and a failure that is logged": (
        f"{FAILS}import logging, multiprocessing as mp\n"
        "child = mp.get_context('fork').Process(target=fails)\n"
        "child.start(); child.join(); print(child.exitcode)\n"
        "try: fails()\nexcept Exception: logging.exception('a row failed')"
    ),
    "a spawned child that fails, and one of torch's": (
        f"{FAILS}import multiprocessing as mp, torch.multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    child = mp.get_context('spawn').Process(target=fails)\n"
        "    child.start(); child.join(); print(child.exitcode)\n"
        "    torch.multiprocessing.start_processes(fails, nprocs=1, start_method='fork')"
    ),
    "a worker of a DataLoader that fails": (
        f"{FAILS}from torch.utils.data import DataLoader\n"
        "list(DataLoader(range(2), collate_fn=fails, num_workers=1))"
    ),
    "a task that fails and that nobody asks": (
        f"{FAILS}import asyncio\nasync def task(): fails()\n"
        "async def main():\n    asyncio.create_task(task(), name='t')\n"
        "    await asyncio.sleep(0.1)\n"
        "asyncio.run(main())"
    ),
}


def outcome(command: list[str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        command, cwd=folder, input="abc", capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def traced(folder: Path, *program: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    return warm_outcome(["-m", "tensortrail", "trace", *options, *program], folder)


def warm_outcome(command: list[str], folder: Path) -> tuple[int, str, str]:
    done = warm.run(command, folder, given="abc")
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_script_behaves_as_without(tmp_path: Path, source: str) -> None:
    (tmp_path / "script.py").write_text(source)
    program = ["script.py", "-m", "--quiet", "-x"]
    if "import torch" in source:  # the others compare with a Python that had nothing yet
        plain = warm_outcome(program, tmp_path)
    else:
        plain = outcome([sys.executable, *program], tmp_path)
    code, out, errors = traced(tmp_path, *program, options=("--quiet",))
    assert (code, out, errors.partition("\ntensortrail: what was where")[0]) == plain


RULES = "print([each for each in sys.modules if each.startswith('tensortrail.rules.devices.')])"


def test_rules_are_imported_when_the_program_is_through(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"import gc, sys\n{RULES}\nprint(gc.isenabled())")
    command = [sys.executable, "-m", "tensortrail", "trace", "script.py"]
    code, out, err = outcome(command, tmp_path)
    assert (code, out) == (0, "[]\nTrue\n")
    assert "no findings" in err


def test_rules_that_only_read_code_have_no_part_in_a_run() -> None:
    of_runs = {
        code
        for code, rule in all_rules().items()
        if rule.default and (rule.watches_runs() or rule.examines_checkpoints())
    }
    assert {each.code for each in chosen("")} == of_runs
    assert {each.code for each in chosen("OFF101,DEV521")} == {"OFF101"}


def test_a_module_and_a_folder_behave_as_without(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys; print(sys.argv, __name__, __package__, __spec__.name, sys.path[0])"
    )
    for program in (["-m", "package", "--x"], ["package", "y"]):
        plain = outcome([sys.executable, *program], tmp_path)
        assert traced(tmp_path, *program, options=("--quiet",)) == plain


MIXED = """\
import torch

def offload(model):
    model[0].to("meta")

def main():
    model = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 2))
    offload(model)
    print(model(torch.tensor([1, 2])))

main()
"""


UNWINDS = """\
import contextlib, torch
@contextlib.contextmanager
def tidied(x):
    try:
        yield
    finally:
        (x + 1).to("cpu")
weight, given = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
with tidied(weight):
    given @ weight
"""


def test_work_while_the_stack_unwinds_does_not_handle_the_exception(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(UNWINDS)
    code, _, errors = traced(tmp_path, "script.py", options=("--rehearse", "cuda"))
    assert code == 1
    assert "  cause    DEV502 " in errors
    assert "  error DEV502  script.py:10" in errors


def test_no_gpu_is_simulated_where_the_environment_hides_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    fails = "torch.ones(2, 2) @ torch.ones(3, 3)"
    (tmp_path / "script.py").write_text(f"import torch\nprint(torch.cuda.device_count())\n{fails}")
    _, out, told = traced(tmp_path, "script.py", options=("--rehearse", "cuda"))
    assert out.split() == ["0"]
    assert "CUDA_VISIBLE_DEVICES names no GPU, so none is simulated" in told
    assert "--rehearse cuda:1" in told
    _, out, told = traced(tmp_path, "script.py", options=("--rehearse", "cuda:1"))
    assert out.split() == ["1"]
    assert "CUDA_VISIBLE_DEVICES" not in told
    assert fails in told
    assert "_ops.py" not in told  # a frame that only a rehearsal has


def test_a_failure_is_explained_under_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(MIXED)
    code, _, errors = traced(tmp_path, "script.py")
    assert code == 1
    before, _, told = errors.partition("tensortrail: what was where")
    assert "Traceback (most recent call last)" in before
    assert "tensortrail" not in before.replace(str(tmp_path), "")
    assert "model.0.weight" in told
    assert "moved cpu -> meta at script.py:4 in offload" in told
    assert "it began at script.py:9 in main" in told
    assert "cause" in told
    assert "change" in told


def test_an_ordinary_failure_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.ones(2).reshape(3)")
    code, _, errors = traced(tmp_path, "script.py")
    assert code == 1
    assert "what was where" not in errors
    assert "the program ended with RuntimeError, which is not explained by this run" in errors


def test_a_rehearsal_says_that_it_ended_the_program_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.cuda.CUDAGraph()")
    code, _, errors = traced(tmp_path, "--rehearse", "cuda", "script.py")
    assert code == 1
    assert "NotRehearsed ended the rehearsal, not the program" in errors


def test_the_end_tells_where_the_trail_is(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(MIXED.replace("    print", "    # print"))
    code, _, errors = traced(tmp_path, "script.py")
    assert code == 0
    assert "cpu -> meta" in errors
    (run,) = (each for each in (tmp_path / ".tensortrail").iterdir() if each.is_dir())
    shown = outcome([sys.executable, "-m", "tensortrail", "report", str(run)], tmp_path)
    assert shown[0] == 0
    assert "Who moved what" in shown[1]
    assert "script.py:4" in shown[1]


def test_check_changes_the_exit_code_only_for_findings(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "import torch\nmodel = torch.nn.Linear(3, 2, device='meta')\n"
        "torch.save(model.state_dict(), 'model.pt')\n"
    )
    (tmp_path / "good.py").write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    code, _, errors = traced(tmp_path, "bad.py", options=("--check",))
    assert (code, "SHD405" in errors) == (1, True)
    assert traced(tmp_path, "bad.py")[0] == 0
    assert traced(tmp_path, "good.py", options=("--check",))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to run"),
        (["-c", "print(1)"], "a recorded program is a file or a module"),
        (["--rehearse", "x.py"], "--rehearse needs devices"),
        (["missing.py"], "missing.py: cannot be read"),
        (["."], "error: .: the folder has no __main__.py"),
        (["-m", "missing_module"], "no such module"),
        (["--focus", "what", "x.py"], "write device=cuda, name=embed or size>=1MB"),
        (["--max-size", "lots", "x.py"], "'lots' is not a size"),
        (["--ops", "5-3", "x.py"], "names no steps"),
        (["--directory", "taken", "x.py"], "taken"),
        (["--check", "--select", "TYPO", "x.py"], "no rule 'TYPO'"),
        (["--select", "TYPO", "x.py"], "no rule 'TYPO'"),
        (["--rehearse", "cuda:2x24", "x.py"], "did you mean cuda:2x24GiB?"),
        (["--rehearse", "cuda:2x24g", "x.py"], "did you mean cuda:2x24giB?"),
        (["--rehearse", "cuda:0", "x.py"], "between 1 and 64"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "x.py").write_text("print('ran')")
    (tmp_path / "taken").write_text("a file")
    code, shown, errors = traced(tmp_path, *arguments)
    assert code == 2
    assert message in errors
    assert "\\x0a" not in errors
    assert "ran" not in shown


def test_every_operation_of_the_asked_steps(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nmodel = torch.nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(3):\n    opt.zero_grad()\n"
        "    model(torch.ones(2, 3)).sum().backward()\n    opt.step()\n"
    )
    traced(tmp_path, "script.py", options=("--ops", "2", "--directory", "run"))
    from tensortrail.rules import Did
    from tensortrail.tracer.reading.timeline import open_run

    ops = [event for event in open_run(tmp_path / "run").events(Did.OP) if "addmm" in event.op]
    assert len(ops) == 1
    assert ops[0].site is not None
    assert ops[0].site.line == 6


def test_focus_keeps_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nsmall = torch.ones(3)\nlarge = torch.ones(1000, 1000)\n"
    )
    traced(tmp_path, "script.py", options=("--focus", "size>=1MB", "--directory", "run"))
    from tensortrail.rules import Did
    from tensortrail.tracer.reading.timeline import open_run

    made = open_run(tmp_path / "run").events(Did.CREATE)
    assert [event.site.line for event in made if event.site] == [3]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("options", first_of([(), ("--quiet",), ("--check",)]))
def test_an_interrupted_program_dies_of_the_signal(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "script.py").write_text(
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\nfinally:\n    print('cleaned')\n"
    )
    started = [shutil.which("tensortrail", path=os.path.dirname(sys.executable)) or ""]
    for command in ([sys.executable, "-m", "tensortrail"], started):
        if command != [""]:
            code, shown, errors = outcome([*command, "trace", *options, "script.py"], tmp_path)
            assert (code, shown) == (-signal.SIGINT, "cleaned\n")
            assert "KeyboardInterrupt" in errors


def test_a_block_of_the_program_joins_its_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import tensortrail, torch\n"
        "with tensortrail.trace('own', rehearse='cuda:2') as run:\n"
        "    print(torch.ones(2).to('cuda:1').device)\n"
        "print(run.directory)\n"
    )
    code, shown, errors = traced(tmp_path, "script.py", options=("--directory", "run"))
    assert (code, shown) == (0, f"cuda:1\n{tmp_path / 'run'}\n")
    assert errors.count("recorded into the run that is on") == 1


def test_a_rule_that_fails_is_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        "import torch\nfrom tensortrail.rules import all_rules\n"
        'all_rules()["DEV502"].watch = lambda self, timeline: 1 / 0\n'
        "torch.ones(3)\n"
    )
    code, _, told = traced(tmp_path, "prog.py")
    assert code == 0
    assert "tensortrail: DEV502 failed on this run: ZeroDivisionError" in told
    assert "DEV502" not in traced(tmp_path, "prog.py", options=("--quiet",))[2]


LABEL = "torch.nn.functional.cross_entropy(torch.rand(2, 3), torch.tensor([0, 7]))"


def test_the_folder_may_be_removed_under_the_program(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "program.py").write_text(
        f"import os, shutil, torch\nos.chdir('inner'); shutil.rmtree('../inner')\n{LABEL}\n"
    )
    done = warm.run(["-m", "tensortrail", "trace", "program.py"], tmp_path)
    assert "A label is not the number of a class" in done.stderr
    assert "error RUN101" in done.stderr
    assert "defect" not in done.stderr


def test_an_exception_that_cannot_describe_itself_is_not_explained(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\nclass Bad(Exception):\n    def __str__(self): raise ValueError('no')\n"
        f"try:\n    {LABEL}\nexcept IndexError as error:\n    raise Bad() from error\n"
    )
    done = warm.run(["-m", "tensortrail", "trace", "program.py"], tmp_path)
    assert "the program ended with Bad, which is not explained by this run" in done.stderr
    assert "defect" not in done.stderr
