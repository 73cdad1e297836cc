from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Guard, Module, Rule, Timeline
from tensortrail.rules.shards._collectives_inside import come_to_collectives
from tensortrail.rules.shards._gone_ranks import Ended, ended
from tensortrail.rules.shards._left_ranks import Left, left
from tensortrail.rules.shards._of_all_ranks import (
    WAITS_ALWAYS,
    is_of_accelerator,
    made_by_all,
    may_be_sharded,
)
from tensortrail.rules.shards._parted_ranks import Parted, parted
from tensortrail.rules.shards._parting import parting_condition
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.sentences import one_line


class CollectiveOnSomeRanks(Rule):
    """Only some processes make a call that all of them have to make.

    ## What it does
    Reports these calls under a condition on the rank (`if rank == 0:`,
    `if accelerator.is_main_process:`), or after a `return` of the other ranks:

    - collectives of `torch.distributed` (`all_reduce`, `barrier`, `broadcast`, `all_gather` and the
      like), and saving or loading a distributed checkpoint;
    - `save_state`, `gather`, `reduce` and `wait_for_everyone` of an Accelerator;
    - `save_checkpoint` and `load_checkpoint` of a DeepSpeed engine;
    - `all_reduce`, `all_gather`, `broadcast`, `barrier`, `save` and `load` of a Fabric; `train`,
      `evaluate` and `predict` of a Trainer of transformers; `self.log(..., sync_dist=True)`;
    - a call, or `state_dict()`, of a model that the function or class has wrapped in FSDP, and
      `full_tensor()` of a DTensor;
    - a function or method of the project that makes such a call whenever it runs in one of several
      processes.

    In a recorded run, reports a collective that failed, or in which a rank ended, while another
    rank was in another one, or gave a tensor of another size or type to the same one; and a call
    that waited for a rank that had left the group, as when it has fewer batches, or whose process
    had ended: it was killed, left with an exit code, or failed.

    Reported as a note: `save_state`, `load_state`, `get_state_dict` of an Accelerator, unless the
    file names FSDP or DeepSpeed (then a warning). They wait for other processes only with one of
    these.

    Not reported: a call that the other branch, a function or method that it calls, or the same
    condition with the opposite answer makes as well, a broadcast that a loop of another function
    receives, and a collective with a `group`.

    ## Why is this bad?
    The program hangs until the timeout: the ranks that make the call wait for those that do not. Or
    another rank pairs it with its next collective, and they exchange the wrong tensors. With one
    process nothing happens.

    ## Fix safety
    No fix is offered: all processes have to make the call, and only you know which of the lines
    around it are for one process.

    ## References
    - pytorch documentation, `torch.distributed`: collective functions
    - deepspeedai/DeepSpeed documentation: all processes call `save_checkpoint`, not rank 0 alone
    - huggingface/accelerate documentation: `save_state` is called on every process
    """

    code = "SHD431"
    name = "collective-on-some-ranks"
    severity = Severity.ERROR
    errors_as = Severity.NOTE
    confidence = Confidence.MEDIUM
    notes = False
    compares_ranks = True
    triggers = (("distributed", "rank"), ("distributed", "RANK"), ("distributed", "is_main"),
                ("ccelerat", "process"), ("save_checkpoint", "rank"),
                ("save_checkpoint", "is_main"), ("abric", "rank"), ("abric", "is_global_zero"),
                ("sync_dist", "is_global_zero"), ("Trainer", "is_world_process_zero"),
                ("Trainer", "rank"))  # fmt: skip

    bad = (
        Bad(
            """\
import torch.distributed as dist

def report(loss, rank):
    if rank == 0:
        dist.all_reduce(loss)
        print(loss / dist.get_world_size())
""",
            lines=(5,),
            instead="""\
import torch.distributed as dist

def report(loss, rank):
    dist.all_reduce(loss)
    if rank == 0:
        print(loss / dist.get_world_size())
""",
        ),
        Bad(
            """\
from accelerate import Accelerator

def keep(accelerator: Accelerator, folder):
    if not accelerator.is_main_process:
        return
    accelerator.save_state(folder)
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def train(model, path):
    model = FSDP(model)
    is_first = dist.get_rank() == 0
    if is_first:
        torch.save(model.state_dict(), path)
""",
            lines=(9,),
        ),
        Bad(
            """\
import deepspeed
import torch.distributed as dist

def train(model, loader, config, folder):
    engine, *_ = deepspeed.initialize(model=model, config=config)
    for step, batch in enumerate(loader):
        engine.backward(engine(batch))
        engine.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            engine.save_checkpoint(folder, tag=str(step))
""",
            lines=(10,),
        ),
        Bad(
            """\
from accelerate import Accelerator

accelerator = Accelerator()

def keep(model, path, step):
    if accelerator.is_main_process and step % 100 == 0:
        accelerator.wait_for_everyone()
        accelerator.save(model.state_dict(), path)
""",
            lines=(7,),
            instead="""\
from accelerate import Accelerator

accelerator = Accelerator()

def keep(model, path, step):
    if step % 100 == 0:
        accelerator.wait_for_everyone()
        accelerator.save(model.state_dict(), path)
""",
        ),
        Bad(
            """\
import torch.distributed as dist

class Trainer:
    def evaluate(self, loader):
        total = sum(self.model(x).sum() for x in loader)
        if dist.is_initialized():
            dist.all_reduce(total)
        return total

    def train(self, loader, epochs):
        for epoch in range(epochs):
            self.run_epoch(loader)
            if dist.get_rank() == 0:
                print(self.evaluate(loader))
""",
            lines=(14,),
        ),
    )
    good = (
        Good(
            """\
import torch.distributed as dist


def train(optimizer, rank, signal):
    def closure():
        if rank == 0:
            dist.broadcast(signal, src=0)
        return loss()

    if rank == 0:
        optimizer.step(closure)
    else:
        while signal > 0:
            dist.broadcast(signal, src=0)
            loss()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def first(make, rank):
    if rank != 0:
        dist.barrier()
    data = make()
    if rank == 0:
        dist.barrier()
    return data

def second(make, rank):
    if rank > 0:
        dist.barrier()
    data = make()
    if rank == 0:
        dist.barrier()
    return data

def cached(make, local_rank):
    if local_rank not in [-1, 0]:
        dist.barrier()
    data = make()
    if not dist.is_initialized() or local_rank == 0:
        dist.barrier()
    return data

def kept(make, local_rank, ready, ids):
    if ready and local_rank not in {-1, 0}:
        dist.barrier(device_ids=ids) if ids else dist.barrier()
    data = make()
    if ready and local_rank == 0:
        dist.barrier(device_ids=ids) if ids else dist.barrier()
    return data

def sent(tensor, rank, group, local_rank, args):
    if rank == 0:
        dist.broadcast(tensor, src=0)
    else:
        tensor = torch.empty_like(tensor)
        dist.broadcast(tensor, src=0)
    if rank in (0, 1):
        dist.all_reduce(tensor, group=group)
    if dist.get_world_size() > 1 and rank is not None:
        dist.all_reduce(tensor)
    if local_rank >= 0:
        dist.barrier()
    if args.local_rank != -1:
        dist.barrier()
    if rank == 0:
        print(tensor)
    return tensor

def saved(state, rank, folder):
    if rank == 0 and not folder.exists():
        raise FileNotFoundError(folder)
    dist.barrier()
"""
        ),
        Good(
            """\
from accelerate import Accelerator

def keep(accelerator: Accelerator, model, folder):
    accelerator.wait_for_everyone()
    weights = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(folder, state_dict=weights)
"""
        ),
        Good(
            """\
import torch.distributed as dist

def train(model, optimizer, saver, loss, folder):
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        saver.save_checkpoint(folder)
"""
        ),
        Good(
            """\
import torch.distributed as dist

def averaged(value, alone=False):
    if not alone:
        dist.all_reduce(value)
    return value

def together():
    dist.barrier()

def log(loss, rank):
    if rank == 0:
        print(averaged(loss, alone=True))

def prepare(make, rank):
    if rank == 0:
        make()
        together()
    else:
        dist.barrier()
"""
        ),
    )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        apart: list[Parted | Left | Ended] = [*parted(timeline), *left(timeline)]
        apart = apart or [*ended(timeline)]
        for each in apart:
            sure = Confidence.HIGH
            fixes = [Fix(each.change, Safety.DISPLAY, ())]
            yield self.finding_in_run(
                timeline, each.failed, str(each), confidence=sure, fixes=fixes
            )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[tuple[int, ast.expr]] = set()
        for call in made_by_all(module):
            guard = parting_condition(module, call)
            if guard is not None and (call.lineno, guard.test) not in reported:
                reported.add((call.lineno, guard.test))  # `f(x) if whole else f()` is one line
                yield self._reported(module, call, guard)
        for call, inside in come_to_collectives(module):
            guard = parting_condition(module, call)
            if guard is None or _is_left_by_an_option(guard):
                continue
            if (call.lineno, guard.test) not in reported:
                reported.add((call.lineno, guard.test))
                yield self._of_callee(module, call, guard, inside)

    def _of_callee(
        self, module: Module, call: ast.Call, guard: Guard, inside: frozenset[str]
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` calls `{min(inside)}`, in which all processes wait "
            f"for each other, and only those where `{one_line(module, guard.test)}` is "
            f"{_answer(guard)} call it",
            severity=Severity.NOTE,
            trail=[(guard.test, "tests the rank"), (call, "comes to a collective")],
            told=True,
        )

    def _reported(self, module: Module, call: ast.Call, guard: Guard) -> Finding:
        of_accelerator = is_of_accelerator(module, call) and called(call) not in WAITS_ALWAYS
        sharded = not of_accelerator or may_be_sharded(module, call)
        when = " with FSDP and DeepSpeed" if of_accelerator else ""
        return self.finding(
            module,
            call,
            f"all processes have to call `{one_line(module, call.func)}`{when}, but only those "
            f"where `{one_line(module, guard.test)}` is {_answer(guard)} do: they wait for the "
            "others",
            severity=Severity.NOTE
            if _is_after_an_interrupt(module, call)
            else _SEVERITY[of_accelerator, sharded],
            trail=[(guard.test, "tests the rank"), (call, "waits for all")],
        )


_SEVERITY = {
    (False, True): Severity.ERROR,
    (True, True): Severity.WARNING,
    (True, False): Severity.NOTE,
}
"""By whether an Accelerator is called, and whether the file knows of sharded models."""


def _is_after_an_interrupt(module: Module, call: ast.Call) -> bool:
    """Under `except KeyboardInterrupt`: all processes are interrupted."""
    handlers = (each for each in module.ancestors(call) if isinstance(each, ast.ExceptHandler))
    return any(
        each.type is not None and "KeyboardInterrupt" in module.text(each.type) for each in handlers
    )


def _is_left_by_an_option(guard: Guard) -> bool:
    """`if measures and rank == 0: return` before it: with the option one process may be meant."""
    return isinstance(guard.test, ast.BoolOp) and not guard.holds


def _answer(guard: Guard) -> str:
    return "true" if guard.holds else "false"
