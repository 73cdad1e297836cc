from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.copies._in_flight import is_given_away, read_in_flight
from tensortrail.rules.copies._works import Begun, begun, handle_uses
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class CollectiveNotAwaited(Rule):
    """A tensor is used while other processes may still write it: nobody waits for the exchange.

    ## What it does
    Reports collectives with `async_op=True` and `irecv` if

    - the tensor that they fill is read before the handle is used, and nothing else waits;
    - the handle is dropped, or no line reads the variable or list that has it, and the tensor
      belongs to the caller or to the object.

    Functions of the file that return such a handle are followed.

    Not reported: a handle that is returned or given to others, or an attribute that some line
    reads; a later `synchronize`, `barrier` or collective that waits.

    ## Why is this bad?
    The call returns at once, and the exchange runs beside what follows. Values are those from
    before the exchange, or a mixture, and no error is raised. It shows on some machines and not on
    others.

    ## Fix safety
    No fix is offered: `handle.wait()` belongs as late as possible.

    ## References
    - pytorch documentation of `torch.distributed`: synchronous and asynchronous collective
      operations
    """

    code = "XFR617"
    name = "collective-not-awaited"
    severity = Severity.WARNING
    proven = False
    triggers = (("distributed", "async_op"), ("distributed", "irecv"))

    bad = (
        Bad(
            """\
import torch.distributed as dist

def gathered(shard, full):
    work = dist.all_gather_into_tensor(full, shard, async_op=True)
    total = full.sum()
    work.wait()
    return total
""",
            lines=(5,),
            instead="""\
import torch.distributed as dist

def gathered(shard, full):
    work = dist.all_gather_into_tensor(full, shard, async_op=True)
    work.wait()
    return full.sum()
""",
        ),
        Bad(
            """\
import torch.distributed as dist

def average(parameters):
    handles = []
    for each in parameters:
        handles.append(dist.all_reduce(each.grad, async_op=True))
    for each in parameters:
        each.grad.div_(dist.get_world_size())
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch.distributed as dist

def share(model):
    for each in model.parameters():
        dist.broadcast(each.data, src=0, async_op=True)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def gathered(shard, full):
    work = dist.all_gather_into_tensor(full, shard, async_op=True)
    print(full.shape)
    work.wait()
    return full.sum()

def begun(x):
    return dist.all_reduce(x, async_op=True)

def average(parameters):
    handles = [dist.all_reduce(each.grad, async_op=True) for each in parameters]
    for handle in handles:
        handle.wait()
    for each in parameters:
        each.grad.div_(dist.get_world_size())

def share(model):
    for each in model.parameters():
        dist.broadcast(each.data, src=0, async_op=True)
    dist.barrier()

def signal(model, batch):
    dist.broadcast(torch.zeros(1, device="cuda"), src=0, async_op=True)
    return model(batch)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for started in begun(module):
            uses = handle_uses(module, started)
            if uses is None:
                continue
            read = read_in_flight(module, started, uses)
            if read is not None:
                yield self._read(module, started, read)
            elif not uses and is_given_away(module, started):
                yield self._given_away(module, started)

    def _read(self, module: Module, started: Begun, read: ast.expr) -> Finding:
        call = one_line(module, started.call.func)
        return self.finding(
            module,
            read,
            f"`{one_line(module, read)}` is used here, and `{call}` in line {started.call.lineno} "
            f"may still write `{one_line(module, started.filled)}`: nothing has waited for it",
            trail=[(started.call, "the exchange begins"), (read, "and this does not wait for it")],
        )

    def _given_away(self, module: Module, started: Begun) -> Finding:
        return self.finding(
            module,
            started.call,
            f"nobody can wait for this `{one_line(module, started.call.func)}`: its handle is "
            f"dropped, and whoever uses `{one_line(module, started.filled)}` next may read it too "
            "early",
        )
