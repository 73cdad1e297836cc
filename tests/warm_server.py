"""A process that has torch already, and becomes one program after another by forking.

It reads lists of jobs, one JSON array a line. Those of one line run at the same time; it answers
with the statuses that `os.waitpid` gave. A child runs its program as `python` would, as `__main__`
with its own arguments, folder, environment and streams, up to the interpreter's own end."""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import sys
import weakref
from typing import Any

COMPILER = ("torch._inductor.utils", "torch._dynamo.convert_frame")
"""What each rehearsal imports, and each program that makes an optimizer: two seconds."""


def wait_for_jobs() -> dict[str, Any] | None:
    """Returns in the children, each with its job; at the end, without one."""
    there: set[str] = set()
    atexit.register(_leave_standing, there)  # the first one is called last
    from tensortrail.cli import trace  # noqa: F401
    from tensortrail.rules import all_rules
    from tensortrail.tracer.exports import closing  # noqa: F401
    from tensortrail.tracer.hooks import all_hooks
    from tensortrail.tracer.recording import begin  # noqa: F401
    from tests.unmeasured import leave_guards_unmeasured

    all_rules()
    all_hooks()
    for name in COMPILER:
        importlib.import_module(name)
    leave_guards_unmeasured()
    own = {"__main__", "sys", "builtins"}
    there |= {name for name in sys.modules if name.partition(".")[0] not in own}
    gc.collect()
    gc.freeze()  # or each child looks through all of torch, and copies it, as it ends
    _leave_finalizers()
    while line := os.fdopen(os.dup(0), "rb", 0).readline():
        children = []
        for job in json.loads(line):
            children.append(os.fork())
            if not children[-1]:
                return job  # type: ignore[no-any-return]
        ended = " ".join(str(os.waitpid(child, 0)[1]) for child in children)
        os.write(1, f"{ended}\n".encode())
    return None


def _leave_finalizers() -> None:
    """What torch's libraries registered with it is not undone when a child ends: 174 of them, and
    a third of the memory that a small program touches."""
    for each in weakref.finalize._registry:  # type: ignore[attr-defined]
        each.atexit = False


def _leave_standing(there: set[str]) -> None:
    """The modules that the server had are not taken apart when a program ends: nobody sees it, and
    it takes longer than a small program. Those of the program are."""
    import ctypes
    import sys  # a script may call something else so

    kept = {name: sys.modules.pop(name) for name in there if name in sys.modules}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def become(job: dict[str, Any]) -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_TRUNC | os.O_CREAT
        file = os.open(job[name], flags, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    also = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [each for each in also if each and each not in sys.path]
    sys.argv[:] = job["argv"]
    _leave_libraries()


def _leave_libraries() -> None:
    """When the interpreter has ended, the process does too: torch would take its tables of all
    operations apart, for a tenth of a second."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # called with the status, before what libraries registered
        atexit.register(libc.fflush, None)
        libc.on_exit(libc._exit, None)


if __name__ == "__main__":
    given = wait_for_jobs()
    if given is not None:
        become(given)
        if given["module"]:
            import runpy

            sys.path[0] = os.getcwd()
            runpy._run_module_as_main(given["module"])  # type: ignore[attr-defined]
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
            globals().update(__file__=os.path.abspath(sys.argv[0]), __doc__=None)
            del wait_for_jobs, become, given, COMPILER
            del _leave_standing, _leave_finalizers, _leave_libraries
            with open(__file__, "rb") as _program:
                try:
                    exec(compile(_program.read(), __file__, "exec"))
                except Exception as _error:  # a traceback begins in the program
                    _at = _error.__traceback__ and _error.__traceback__.tb_next
                    sys.last_type, sys.last_value, sys.last_traceback = type(_error), _error, _at
                    sys.excepthook(type(_error), _error.with_traceback(_at), _at)
                    sys.exit(1)
