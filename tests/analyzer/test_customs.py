"""How one function is called all over a package."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.analyzer.facts.texts.customs import makes_default
from tensortrail.analyzer.facts.texts.programs import Importers, imported, of_one_program
from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.findings import Finding
from tensortrail.rules import all_rules
from tensortrail.rules.project_facts import ProjectCall

FILES = {
    "__init__.py": "",
    "tables.py": "import torch\n\ndef table(n, device=None):\n"
    "    return torch.arange(n, device=device)\n",
    "one.py": "from .tables import table\n\ndef f(x):\n    a = table(1, device=x.device)\n"
    "    return a, table(2, x.device), table(\n        3, device=x.device)\n",
    "two.py": "from pack import tables\n\ndef g(x, d):\n    # a table(5) is made\n"
    "    x.table(7)\n    return tables.table(4, device=d), tables.table(5, device='cpu')\n",
    "other.py": "from elsewhere import table\n\ndef h(x):\n    return table(6)\n",
    "last.py": "import torch\nfrom .tables import table\n\ndef k(x, device):\n"
    "    return x.to(device) * table(8)\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def calls(package: Path, file: str) -> list[ProjectCall]:
    path = package / file
    module = PythonModule(str(path), path.read_bytes(), open_project())
    call = next(each for each in module.nodes(ast.Call) if "table" in ast.unparse(each.func))
    return sorted(module.calls_in_project(call), key=lambda each: (each.path, each.line))


def test_calls_of_a_function_are_found_in_all_files_that_mean_it(package: Path) -> None:
    found = [(Path(each.path).name, each.line) for each in calls(package, "last.py")]
    assert found == [
        ("last.py", 5), ("one.py", 4), ("one.py", 5), ("one.py", 5), ("two.py", 6), ("two.py", 6),
    ]  # fmt: skip


def test_what_is_passed_is_told_from_what_is_written_out(package: Path) -> None:
    *_, given, written = calls(package, "last.py")
    assert given.given == {"device"}
    assert given.written == {0}
    assert written.written == {0, "device"}


def test_a_name_of_two_functions_has_no_customs(package: Path) -> None:
    (package / "more.py").write_text("def table(n):\n    return n\n")
    assert not calls(package, "last.py")


def test_a_departure_is_reported_with_the_count_and_the_files_it_needs(package: Path) -> None:
    path = package / "last.py"
    rules = [all_rules()["DEV533"]()]
    result = judge(str(path), path.read_bytes(), rules, open_project())
    assert [each.site.line for each in result.findings] == [5]
    assert "4 of 5 calls" in result.findings[0].message
    assert {str(package / "one.py"), str(package / "two.py")} <= set(result.needs)


def test_a_changed_file_is_counted_anew(package: Path) -> None:
    path = package / "last.py"
    rules, project = [all_rules()["DEV533"]()], open_project()
    assert judge(str(path), path.read_bytes(), rules, project).findings
    (package / "one.py").write_text("")
    project.forget(str(package / "one.py"))
    assert not judge(str(path), path.read_bytes(), rules, project).findings


GUARDED = """
class First:
    def run(self, many):
        if hasattr(self, "hook") and (
            self.hook is not None
        ):
            for each in many:
                self.unet.to("cpu")

    def end(self):
        self.unet.to("cpu")

    def other(self, low_vram):
        if not low_vram:
            self.unet.eval()
        elif self.offload:
            pass
        else:
            # after all
            self.unet.to('cpu')
"""


def test_moves_that_read_the_same_are_found_with_what_is_asked_before_them(package: Path) -> None:
    (package / "guarded.py").write_text(GUARDED)
    path = package / "moved.py"
    path.write_text("class Own:\n    def run(self):\n        self.unet.to('cpu')\n")
    module = PythonModule(str(path), path.read_bytes(), open_project())
    (statement,) = module.nodes(ast.Expr)
    found = module.same_moves_in_project(statement)
    assert [(each.line, sorted(each.flags)) for each in found] == [
        (8, ["hook"]), (11, []), (20, ["low_vram", "offload"]),
    ]  # fmt: skip
    assert str(package / "guarded.py") in module.needs


def test_what_other_files_pass_and_move_follows_their_changes(package: Path) -> None:
    project = open_project()
    (package / "guarded.py").write_text(GUARDED)
    path = package / "moved.py"
    path.write_text("class Own:\n    def run(self):\n        self.unet.to('cpu')\n")

    def asked() -> tuple[int, int]:
        module = PythonModule(str(path), path.read_bytes(), project)
        (statement,) = module.nodes(ast.Expr)
        last = PythonModule(str(package / "last.py"), FILES["last.py"].encode(), project)
        call = next(last.calls("table"))
        return len(module.same_moves_in_project(statement)), last.passed_in_project(call, "device")

    before = asked()
    (package / "guarded.py").write_text("from .tables import table\nx = table(4, device=y)\n")
    project.forget(str(package / "guarded.py"))
    assert before[0] == 3
    assert asked() == (0, before[1] + 1)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.set_default_device(device)", True),
        ("torch.set_default_device('cuda:1')", True),
        ("torch.set_default_device('cpu')", False),
        ("torch.set_default_device(None)", False),
        ("torch.set_default_tensor_type(torch.FloatTensor)", False),
    ],
)
def test_a_device_that_is_chosen_may_be_made_the_default(call: str, expected: bool) -> None:
    assert makes_default(f"import torch\n\n{call}\n".encode()) is expected


def test_a_package_that_makes_a_gpu_the_default_device_is_seen_from_its_other_files(
    package: Path,
) -> None:
    (package / "train.py").write_text(
        "import torch\n\ndef main():\n    '>>> torch.set_default_device(cuda)'\n"
        "    torch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
    )
    found = model_findings(package)
    assert [(each.severity.value, each.site.line) for each in found] == [("note", 5)]
    assert "runs line 5 of train.py before" in found[0].message
    (package / "train.py").unlink()
    assert [each.severity.value for each in model_findings(package)] == ["warning"]


def model_findings(package: Path) -> Sequence[Finding]:
    text = (
        "import torch\n\ndef f(n, device: torch.device):\n    y = torch.zeros(n, device=device)\n"
        "    return y + torch.arange(n)\n\nmade = f(3, 'cuda')\n"
    )
    path = package / "model.py"
    path.write_text(text)
    rules = [all_rules()["DEV521"]()]
    return judge(str(path), text.encode(), rules, open_project()).findings


def test_all_scripts_beside_a_package_may_make_a_gpu_the_default_device(package: Path) -> None:
    begin = "import torch\nfrom pack import tables\n"
    script, other = package.parent / "train.py", package.parent / "run.py"
    (package.parent / "LICENSE").write_text("")
    script.write_text(begin + "torch.set_default_device('cuda')\n")
    assert [each.severity.value for each in model_findings(package)] == ["note"]
    other.write_text(begin)
    assert [each.severity.value for each in model_findings(package)] == ["warning"]
    other.write_text("import torch\n")
    assert [each.severity.value for each in model_findings(package)] == ["note"]


@pytest.mark.parametrize(
    ("line", "is_set"),
    [
        ("saver.staging = False", False),
        ("saver.staging: bool = None", False),
        ("saver.staging == True", False),
        ("saver.staging_done = True", False),
        ("saver.staging = ready", True),
        ("saver.staging |= ready", True),
        ("saver.staging, n = ready, 1", True),
        ("setattr(saver, 'staging', True)", True),
    ],
)
def test_an_attribute_that_another_file_sets_is_known(
    package: Path, line: str, is_set: bool
) -> None:
    (package / "other.py").write_text(f"def f(saver, ready):\n    {line}\n")
    path = package / "saver.py"
    path.write_text("class Saver:\n    def __init__(self):\n        self.staging = False\n")
    module = PythonModule(str(path), path.read_bytes(), open_project())
    assert module.is_set_in_project("staging") is is_set


def test_a_flag_that_begins_to_be_set_is_seen(package: Path) -> None:
    project, path, other = open_project(), package / "saver.py", package / "other.py"
    path.write_text("class Saver:\n    staging = None\n")
    other.write_text("")
    module = PythonModule(str(path), path.read_bytes(), project)
    assert not module.is_set_in_project("staging")
    other.write_text("def f(saver):\n    saver.staging = True\n")
    project.forget(str(other))
    assert module.is_set_in_project("staging")


def test_functions_are_found_by_their_name_alone(package: Path) -> None:
    (package / "more.py").write_text(
        "class A:\n    def made(self, n, *, device):\n        pass\n\n"
        "    @cached('device')\n    def kept(self, device):\n        pass\n"
    )
    path = package / "user.py"
    path.write_text("import lib\n\ndef f(a):\n    a.made(1), lib.made(2), a.kept(3)\n")
    module = PythonModule(str(path), path.read_bytes(), open_project())
    calls = {ast.unparse(each.func): each for each in module.nodes(ast.Call)}
    (found,) = module.namesakes_of(calls["a.made"])
    assert (found.parameters, found.line) == (("n", "device"), 2)
    assert found.needed == {"n", "device"}
    assert not module.namesakes_of(calls["lib.made"]), "of a library"
    (decorated,) = module.namesakes_of(calls["a.kept"])
    assert not decorated.needed, "a decorator may pass it"
    assert str(package / "more.py") in module.needs


def test_the_text_that_is_judged_counts_and_not_the_one_on_the_disk(package: Path) -> None:
    path = package / "one.py"
    text = path.read_bytes()
    for data, count in ((text, 5), (text.replace(b"device=", b"other="), 3)):
        module = PythonModule(str(path), data, open_project())
        call = next(each for each in module.nodes(ast.Call) if "table" in ast.unparse(each.func))
        assert module.passed_in_project(call, "device") == count


@pytest.mark.parametrize(
    ("above", "is_property"),
    [
        ("@property", True),
        ("@functools.cached_property", True),
        ("@property  # of all", True),
        ("@torch.no_grad()", False),
        ("# a property", False),
    ],
)
def test_a_property_of_another_file_is_known(package: Path, above: str, is_property: bool) -> None:
    (package / "other.py").write_text(
        f"class A:\n    {above}\n    def state_dict(self):\n        ...\n"
    )
    path = package / "saver.py"
    path.write_text("import torch\n\ndef save(a):\n    torch.save(a.state_dict, 'a.pt')\n")
    rules = [all_rules()["SHD430"]()]
    found = judge(str(path), path.read_bytes(), rules, open_project()).findings
    assert bool(found) is not is_property


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("top/nets.py", ["top/train.py"]),
        ("top/a/agents.py", ["top/a/run.py", "top/a/main.py"]),
        ("top/b/agents.py", ["top/b/deep/run.py"]),
        ("top/c/__init__.py", ["top/c_user.py"]),
    ],
)
def test_who_comes_to_import_a_file(path: str, program: list[str]) -> None:
    texts = {
        "top/nets.py": b"import torch\n",
        "top/train.py": b"from nets import (\n    Net,\n)\n",
        "top/a/agents.py": b"agents = 1\n",
        "top/a/run.py": b"from agents import Agent\n",
        "top/a/main.py": b"import run\n",
        "top/b/agents.py": b"",
        "top/b/deep/run.py": b"from ..agents import Agent\n",
        "top/c/__init__.py": b"",
        "top/c_user.py": b"import c.agents_of  # nets\n",
    }
    found = list(of_one_program(path, Importers(texts).of))
    assert found == [path, *program]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"import a.b as c  # d\n", "import a b as c"),
        (b"if x:\n    from .a import (  # b\n        c,\n    )\nd = 1\n", "from a import b c"),
        (b"from important import a\n", "from important import a"),
        (b"reimport(a)\nx = 'import b'\n# import c\n", ""),
    ],
)
def test_words_of_imports(text: bytes, words: str) -> None:
    assert imported(text) == {each.encode() for each in words.split()}
