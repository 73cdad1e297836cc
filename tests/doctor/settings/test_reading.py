"""Settings files are read with their lines; what is none is said to be none, whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.doctor.settings.examine import examine, review
from tensortrail.doctor.settings.reading import Unreadable, parse, read_settings
from tensortrail.rules.settings_file import SettingsKind

ZERO = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"


def test_lines_and_words() -> None:
    parsed = parse("a:\n  b: no\n  c: 'no'\n  d: [1, 2]\n", False)
    assert parsed.values == {"a": {"b": False, "c": "no", "d": [1, 2]}}
    assert parsed.lines == {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "d"): 4}
    assert parsed.words["a", "b"] == "no"
    assert ("a", "c") not in parsed.words


def test_json_with_tabs_and_exponents() -> None:
    parsed = parse('{\n\t"lr": 1e-5,\n\t"a": {"b": true}\n}', True)
    assert parsed.values == {"lr": 1e-5, "a": {"b": True}}
    assert parsed.lines["a", "b"] == 3


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.yaml", b"", "nobody's"),
        ("a.yaml", b"distributed_type: [", "not valid YAML"),
        ("a.yaml", b"- distributed_type", "no settings by name"),
        ("a.yaml", b"distributed_type: !!python/object:os.system x", "not valid YAML"),
        ("a.yaml", b"distributed_type: 2020-99-99", "not valid YAML"),
        ("a.json", b'{"zero_optimization": }', "not valid JSON"),
        ("a.json", b"\xff\xfe", "not UTF-8"),
        ("a.json", b'{"zero_optimization":' + b"[" * 5000, "deeper|not valid JSON"),
        ("a.yaml", b"distributed_type: NO\n" + b"x: 1\n" * 300_000, "more than"),
        ("b.yaml", b"model: llama\n", "nobody's"),
    ],
)
def test_what_is_none(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    reason = "no settings of accelerate" if why == "nobody's" else why
    with pytest.raises(Unreadable, match=reason):
        read_settings(str(path))


def test_broken_settings_in_a_folder_are_told_of(tmp_path: Path) -> None:
    """What only looks at the folder would otherwise call it clean."""
    (tmp_path / "good.yaml").write_text(ZERO)
    (tmp_path / "broken.yaml").write_text("distributed_type: FSDP\n  a: 1\n")
    (tmp_path / "template.yaml").write_text("distributed_type: {{ type }}: 1\n")
    (tmp_path / "other.yaml").write_text("a: [\n")
    found = examine([str(tmp_path)])
    assert len(found.files) == 1
    assert found.problems == (
        f"{tmp_path}/broken.yaml was not checked: "
        "it is not valid YAML: mapping values are not allowed here (line 2)",
    )


def test_aliases_upon_aliases_are_bounded(tmp_path: Path) -> None:
    rows = ["distributed_type: FSDP", "a0: &a0 [x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(Unreadable, match="more values"):
        read_settings(str(path))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("distributed_type: 'NO'\n", SettingsKind.ACCELERATE),
        ("zero_optimization: {stage: 2}\n", SettingsKind.DEEPSPEED),
        ("train_batch_size: 8\nfp16: {enabled: true}\n", SettingsKind.DEEPSPEED),
        ("output_dir: o\nsave_strategy: epoch\nfsdp: true\n", SettingsKind.TRAINING),
        ("use_orig_params: true\nbackward_prefetch: backward_pre\n", SettingsKind.FSDP),
    ],
)
def test_whose_they_are(text: str, kind: SettingsKind, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_settings(str(path)).kind is kind


def test_a_comment_silences_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{ZERO}  offload_param_device: cpu\n", encoding="utf-8")
    assert [each.code for each in review(read_settings(str(path)))] == ["CFG903"]
    for comment, left in (("ignore[CFG903] later", 0), ("ignore", 0), ("ignore[CFG901]", 1)):
        line = f"  offload_param_device: cpu  # tensortrail: {comment}\n"
        path.write_text(ZERO + line, encoding="utf-8")
        assert len(review(read_settings(str(path)))) == left


def test_folders_are_walked(tmp_path: Path) -> None:
    below = tmp_path / "configs"
    below.mkdir()
    (below / "a.yml").write_text(f"{ZERO}  offload_param_device: cpu\n", encoding="utf-8")
    (below / "other.yaml").write_text("model: llama\n", encoding="utf-8")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.yaml").write_text(ZERO, encoding="utf-8")
    found = examine([str(tmp_path)])
    assert [file.path for file in found.files] == [str(below / "a.yml")]
    assert (found.others, found.problems) == (1, ())
    told = {check.left_out for check in found.checks}
    assert told == {
        "",
        "no settings of DeepSpeed and no arguments of the Trainer of transformers here",
        "no settings of DeepSpeed here",
        "no arguments of the Trainer of transformers here",
    }
