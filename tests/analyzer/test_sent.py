"""What a call pickles for other processes, also by functions of other files."""

from __future__ import annotations

import ast
from pathlib import Path

from tensortrail.analyzer.judging.module import PythonModule

from .snippets import package

GROUPS = """\
import torch.distributed as dist

class Group:
    @staticmethod
    def of_all(obj, groups, reduce):
        def within(obj, group):
            found = [None] * dist.get_world_size(group)
            dist.all_gather_object(found, obj, group=group)
            return reduce(found)

        for group in groups:
            obj = within(obj, group)
        return obj

    @staticmethod
    def number(obj, groups):
        return len(groups)
"""


def sent(module: PythonModule) -> list[str]:
    found = [module.sent_to_processes(each) for each in module.nodes(ast.Call)]
    return [module.text(each) for given in found for each in given]


def test_a_function_of_another_file_that_passes_it_on(tmp_path: Path) -> None:
    used = """\
    from .groups import Group

    def total(score, groups):
        Group.number(score, groups)
        Group.of_all(reduce=sum, obj=score, groups=groups)
        return Group.of_all(score.cpu(), groups, sum)
    """
    files = {"pack/used.py": used, "pack/groups.py": GROUPS, "pack/__init__.py": ""}
    assert sent(package(tmp_path, files)) == ["score", "score.cpu()"]


def test_the_functions_of_torch(tmp_path: Path) -> None:
    used = """\
    import torch.distributed as dist
    from torch.distributed import gather_object

    def start(found, mine, names):
        dist.all_gather_object(found, mine.x)
        gather_object(obj=mine.y, dst=0)
        dist.broadcast_object_list([names], src=0)
        dist.scatter_object_list(found, mine.z)
        dist.all_gather(found, mine)
    """
    given = sent(package(tmp_path, {"used.py": used}))
    assert given == ["mine.x", "mine.y", "[names]", "mine.z"]
