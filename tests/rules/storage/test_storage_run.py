"""Storage rules, watching real programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Safety, Severity
from tensortrail.rules import all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import open_run
from tests.rules.recorded import WRAPPER, watched


@pytest.mark.parametrize(
    "use",
    [
        "groups.setdefault(tensor.data_ptr(), []).append(name)",
        "groups[tensor.device, tensor.data_ptr()] = name",
        "if tensor.untyped_storage().data_ptr() in groups: continue",
        "tied = tensor.data_ptr() == first.data_ptr()",
    ],
)
def test_meta_weights_taken_for_one(tmp_path: Path, use: str) -> None:
    seen = watched(
        tmp_path,
        f"""\
        import torch
        model = torch.nn.Linear(3, 3, device="meta")
        first, groups = model.weight, {{}}
        for name, tensor in model.state_dict().items():
            {use}  # flagged
        """,
        "STO201",
    )
    assert "`Linear.weight` and `Linear.bias` have the same address" in seen.only.message
    assert "on meta there are no bytes" in seen.only.message
    keyed = "groups." in use or "groups[" in use
    assert seen.only.severity is (Severity.ERROR if keyed else Severity.WARNING)
    assert "made on meta by torch.empty" in seen.steps


@pytest.mark.parametrize(
    "use",
    [
        "groups[tensor.data_ptr()] = name",  # of one tensor only: below
        "if tensor.numel() and tensor.data_ptr() == 7: continue",
        "if tensor.data_ptr() != 0 and tensor.data_ptr() in groups: continue",
        "addresses.append(tensor.data_ptr())",
        "kernel(tensor.data_ptr(), 3)",
        "if tensor.data_ptr() != 7: addresses.append(name)",
        "assert tensor.data_ptr() == 0",
    ],
)
def test_addresses_that_prove_nothing_wrong(tmp_path: Path, use: str) -> None:
    bias = "False" if use.startswith("groups") else "True"
    watched(
        tmp_path,
        f"""\
        import torch
        def kernel(address, count): ...
        model = torch.nn.Linear(3, 3, bias={bias}, device="meta")
        addresses, groups = [], {{}}
        for name, tensor in model.state_dict().items():
            {use}
        """,
        "STO201",
    )


def test_real_weights_have_addresses(tmp_path: Path) -> None:
    source = """\
    import torch
    model = torch.nn.Linear(3, 3)
    groups = {tensor.data_ptr(): name for name, tensor in model.state_dict().items()}
    """
    assert not watched(tmp_path, source, "STO201").found


def test_empty_tensors_with_one_address_are_a_note(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        a, b = torch.empty(0), torch.empty(0)
        keys = {each.data_ptr() for each in (a, b)}  # flagged
        """,
        "STO201",
    )
    assert seen.only.severity is Severity.NOTE


def test_another_storage_at_every_call(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        WRAPPER
        + """\
    def untyped_storage(self):
        return torch.UntypedStorage(0)

weight = Packed(torch.ones(4)).clone()
same = weight.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()  # flagged
""",
        "STO202",
    )
    finding = seen.only
    assert "`untyped_storage()` of `Packed` gives another storage (0 bytes)" in finding.message
    assert finding.confidence is Confidence.HIGH
    assert finding.trail[-1].message == "overridden here"
    assert finding.trail[-1].site.function == "Packed.untyped_storage"


@pytest.mark.parametrize(
    "override",
    [
        "",
        "    def untyped_storage(self):\n        return self.inner.untyped_storage()\n",
        "    def untyped_storage(self):\n"
        "        if not hasattr(self, '_kept'):\n"
        "            self._kept = torch.UntypedStorage(0)\n"
        "        return self._kept\n",
    ],
)
def test_the_same_storage_at_every_call(tmp_path: Path, override: str) -> None:
    use = (
        "weight = Packed(torch.ones(4)).clone()\nfor _ in range(3):\n    weight.untyped_storage()\n"
    )
    assert not watched(tmp_path, WRAPPER + override + use, "STO202").found


def test_a_tensor_set_to_a_storage_without_bytes(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        target = torch.empty(0)
        target.set_(torch.UntypedStorage(0), 0, (4,), (1,))  # flagged
        torch.empty(0).set_(torch.ones(4).untyped_storage(), 0, (4,), (1,))
        torch.ones(3).set_(torch.UntypedStorage(0), 0, (0,), (1,))
        """,
        "STO202",
    )
    assert "storage without bytes" in seen.only.message
    assert seen.only.confidence is Confidence.MEDIUM


def test_a_mapped_file_is_overwritten(tmp_path: Path) -> None:
    """It kills the process: the trail is what is left."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\n"
        "from tensortrail.tracer.recording.begin import begin\n"
        "begin(sys.argv[1])\n"
        "path = sys.argv[1] + '.pt'\n"
        "torch.save({'weight': torch.ones(512, 512)}, path)\n"
        "state = torch.load(path, mmap=True)\n"
        "torch.save(state, path)\n"
        "print('alive')\n"
    )
    run = tmp_path / "run"
    done = subprocess.run([sys.executable, program, run], capture_output=True, text=True)
    if sys.platform == "linux":
        assert done.returncode < 0
        assert "alive" not in done.stdout
    (finding,) = findings(open_run(run), [all_rules()["STO206"]()]).findings
    assert finding.site.line == 7
    assert f"overwrites {run}.pt, from which `weight` (1.0 MB) is still mapped" in finding.message
    assert any("read onto cpu by torch.load" in step.message for step in finding.trail)
    (fix,) = finding.fixes
    assert fix.safety is Safety.DISPLAY
    assert fix.edits[0].text == "path + '.new'"


@pytest.mark.parametrize(
    "ending",
    [
        "torch.save(state, path + '.new')",
        "del state; torch.save({'a': torch.ones(2)}, path)",
        "state = {'a': state['a'].clone()}; torch.save(state, path)",
    ],
)
def test_files_that_nothing_is_mapped_from(tmp_path: Path, ending: str) -> None:
    watched(
        tmp_path,
        f"""\
        import torch
        path = folder + "/model.pt"
        torch.save({{"a": torch.ones(9)}}, path)
        state = torch.load(path, mmap=True)
        {ending}
        """,
        "STO206",
    )


def test_a_file_read_into_memory_may_be_written(tmp_path: Path) -> None:
    source = """\
    import torch
    torch.save(torch.ones(9), folder + "/model.pt")
    kept = torch.load(folder + "/model.pt")
    torch.save(kept, folder + "/model.pt")
    """
    assert not watched(tmp_path, source, "STO206").found


@pytest.mark.parametrize(
    ("save", "fixed"),
    [
        ("torch.save(table[:10], path)", "torch.save(table[:10].clone(), path)"),
        (
            "torch.save({'é': 1, 'rows': table[:10]}, path)",
            "torch.save({'é': 1, 'rows': table[:10].clone()}, path)",
        ),
        ("torch.save(table[0] if table is not None else 0, path)", None),
    ],
)
def test_a_slice_is_saved_whole(tmp_path: Path, save: str, fixed: str | None) -> None:
    seen = watched(
        tmp_path,
        f"""\
        import torch
        path = folder + "/rows.pt"
        table = torch.ones(1000, 1000)
        for _ in range(2):
            {save}  # flagged
        """,
        "STO207",
    )
    assert "writes all 4.0 MB" in seen.only.message
    assert seen.only.evidence["saves"] == "2"
    assert "3: " in seen.steps
    text = seen.fixed
    expected = fixed or "torch.save((table[0] if table is not None else 0).clone(), path)"
    assert f"    {expected}  # flagged" in text
    assert seen.only.fixes[0].safety is Safety.SAFE
    exec(compile(text, "fixed", "exec"), {"folder": str(tmp_path)})
    assert (tmp_path / "rows.pt").stat().st_size < 100_000


def test_two_parts_of_one_storage_would_be_parted_by_the_fix(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        table = torch.ones(1000, 1000)
        torch.save({"a": table[:2], "b": table[1:3]}, folder + "/rows.pt")  # flagged
        """,
        "STO207",
    )
    assert "that each of 2 parts, `a` among them, lies in" in seen.only.message
    assert seen.only.fixes[0].safety is Safety.UNSAFE


@pytest.mark.parametrize(
    "save",
    [
        "torch.save(table[:10].clone(), path)",
        "torch.save(table[:700], path)",
        "torch.save({'a': table[:500], 'b': table[500:]}, path)",
        "torch.save(table.T, path)",
        "torch.save(torch.ones(1000)[:10], path)",
        "torch.save(torch.ones(1).expand(1000, 1000), path)",
        "save_file({'rows': table[:10]}, path)",
        "row = table[0, :10]; table.untyped_storage().resize_(4000); torch.save(row, path)",
    ],
)
def test_what_is_saved_as_small_as_it_is(tmp_path: Path, save: str) -> None:
    pytest.importorskip("safetensors")
    watched(
        tmp_path,
        f"""\
        import torch
        from safetensors.torch import save_file
        path = folder + "/rows.pt"
        table = torch.ones(1000, 1000)
        {save}
        """,
        "STO207",
    )
