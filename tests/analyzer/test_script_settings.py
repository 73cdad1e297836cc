"""Settings in the source of a script: put where the argument comes from, or refused."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

pytest.importorskip("libcst")

from tensortrail.analyzer.fixing.script_settings import patched
from tensortrail.findings import Setting, Site

CALL = "model.save_pretrained('out', **options)\n"


def size(line: int, value: str = "7", position: int = 4) -> Setting:
    call = "save_pretrained"
    at = Site("a.py", line)
    return Setting("lib", "max_shard_size", value, "", call=call, at=at, position=position)


def change(source: str, *settings: Setting) -> str:
    done = patched("a.py", source.encode(), settings)
    assert not done.refused, done.refused
    again = patched("a.py", done.after, settings).after
    assert again == done.after
    return done.after.decode()


def refusal(source: str, setting: Setting) -> str:
    done = patched("a.py", source.encode(), [setting])
    assert done.after == done.before
    ((_, why),) = done.refused
    return why


DICTS = {
    "a display": ("options = {'max_shard_size': '5GB', 'a': 1}\n", "'5GB'", "7"),
    "a call of dict": ("options = dict(max_shard_size='5GB', a=1)\n", "'5GB'", "7"),
    "an annotated one": ("options: dict = {'max_shard_size': '5GB'}\n", "'5GB'", "7"),
    "a value that is a call": ("options = {'max_shard_size': dict(b=1)}\n", "dict(b=1)", "7"),
    "read besides": (
        "options = {'max_shard_size': '5GB'}\nprint(options['max_shard_size'], options.get(1))\n",
        "'5GB'",
        "7",
    ),
}


@pytest.mark.parametrize(("made", "old", "new"), DICTS.values(), ids=DICTS)
def test_the_dict_that_gives_it(made: str, old: str, new: str) -> None:
    line = made.count("\n") + 1
    assert change(made + CALL, size(line)) == made.replace(old, new) + CALL


def test_a_dict_without_it_is_left_alone() -> None:
    made = "options = {'a': 1}\n"
    changed = "model.save_pretrained('out', max_shard_size=7, **options)\n"
    assert change(made + CALL, size(2)) == made + changed


def test_a_dict_of_the_function_around() -> None:
    source = f"options = 1\ndef f(model):\n    options = {{'max_shard_size': 1}}\n    {CALL}"
    assert change(source, size(4)) == source.replace("size': 1", "size': 7")


def test_a_dict_of_the_module_used_in_a_function() -> None:
    source = f"options = {{'max_shard_size': 1}}\ndef f(model):\n    {CALL}"
    assert change(source, size(3)) == source.replace("size': 1", "size': 7")


def test_a_display_in_the_call() -> None:
    source = "model.save_pretrained('out', **{'max_shard_size': 1})\n"
    assert change(source, size(1)) == source.replace("1", "7")


REFUSED = {
    "bound twice": "options = {'max_shard_size': 1}\noptions = {}\n",
    "changed": "options = {'max_shard_size': 1}\noptions['max_shard_size'] = 2\n",
    "updated": "options = {'max_shard_size': 1}\noptions.update(a=1)\n",
    "handed on": "options = {'max_shard_size': 1}\nother(options)\n",
    "given to two": "options = {'max_shard_size': 1}\nother(**options)\n",
    "unknown keys": "options = {key: 1}\n",
    "unpacked into": "options = {'max_shard_size': 1, **more}\n",
    "made elsewhere": "from settings import options\n",
    "computed": "options = made()\n",
    "a loop": "for options in all_of_them: pass\n",
    "with": "with a as options: pass\n",
    "a global": "options = {'max_shard_size': 1}\ndef g():\n    global options\n",
    "dict of pairs": "options = dict([('max_shard_size', 1)])\n",
}


@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_nothing_is_guessed(made: str) -> None:
    why = refusal(made + CALL, size(made.count("\n") + 1))
    assert why == "`**options` may give max_shard_size already"


def test_a_parameter_may_hold_anything() -> None:
    source = f"def save(model, **options):\n    {CALL}"
    assert "may give max_shard_size already" in refusal(source, size(2))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("model.save_pretrained(*where)\n", "`*` may give max_shard_size already"),
        ("model.save('out')\n", "line 1 has no call of save_pretrained"),
        ("a.save_pretrained(); b.save_pretrained()\n", "line 1 has 2 calls of save_pretrained"),
        ("model.save_pretrained('out'\n", "the file does not parse"),
        ("# coding: latin-1\nmodel.save_pretrained()\n", "the file is iso-8859-1, not UTF-8"),
    ],
)
def test_what_cannot_be_changed(source: str, why: str) -> None:
    assert refusal(source, size(source.count("\n"))) == why


def test_a_value_that_is_no_expression() -> None:
    assert refusal("model.save_pretrained()\n", size(1, "7); import os; (")) != ""


def test_several_settings_of_a_file() -> None:
    source = (
        "a.save_pretrained(b.save_pretrained('in'), is_main_process=True)\n"
        "c.save_pretrained(\n    'out',\n)\nload(\n    'out',\n)\n"
    )
    other = Setting("lib", "mmap", "False", "", call="load", at=Site("a.py", 6))
    flag = Setting("lib", "flag", "1", "", call="save_pretrained", at=Site("a.py", 2))
    changed = change(source, size(2), flag, other)
    assert changed == (
        "a.save_pretrained(b.save_pretrained('in'), is_main_process=True)\n"
        "c.save_pretrained(\n    'out',\n    max_shard_size=7,\n    flag=1,\n)\n"
        "load(\n    'out',\n    mmap=False,\n)\n"
    )


def test_calls_in_calls() -> None:
    inner = Setting("lib", "a", "1", "", call="load", at=Site("a.py", 1))
    outer = Setting("lib", "b", "2", "", call="save", at=Site("a.py", 1))
    assert change("load(save(load2()))\n", outer, inner) == "load(save(load2(), b=2), a=1)\n"
    assert change("save(load())\n", outer, inner) == "save(load(a=1), b=2)\n"


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marks_and_line_ends_stay(head: bytes, newline: str) -> None:
    text = "s = '→'\nmodel.save_pretrained(\n    'out',  # 🙂\n)\nprint('\x0c')\n"
    data = head + text.replace("\n", newline).encode()
    done = patched("a.py", data, [size(2)])
    added = "    max_shard_size=7,\n)\nprint".replace("\n", newline).encode()
    assert done.after == data.replace(f"){newline}print".encode(), added)
    ast.parse(done.after)


STAGER = Setting(
    "torch", "how", "C()", "", call="save", at=Site("a.py", 3), imports="from a.b import C"
)


def test_what_a_value_needs_is_imported_once() -> None:
    other = replace(STAGER, at=Site("a.py", 4))
    source = "import x\n\nsave()\nsave()\n"
    done = patched("a.py", source.encode(), [STAGER, other])
    assert done.after.decode() == "import x\nfrom a.b import C\n\nsave(how=C())\nsave(how=C())\n"


def test_without_the_import_the_value_is_left_out() -> None:
    assert refusal("C = 1\n\nsave()\n", STAGER) == "C is another thing in this file"


def test_a_value_that_speaks_of_what_the_file_does_not_know() -> None:
    source = "import x\n\nsave()\n"
    known = Setting("torch", "how", "x.C(len('a'))", "", call="save", at=Site("a.py", 3))
    assert change(source, known) == "import x\n\nsave(how=x.C(len('a')))\n"
    unknown = replace(known, value="accelerate.utils.C()")
    assert refusal(source, unknown) == "accelerate is not imported in this file"


@pytest.mark.parametrize("name", ["a=1, b", "a)#", "class", "", "a.b", "x\n"])
def test_a_name_that_is_no_name(name: str) -> None:
    odd = Setting("lib", name, "1", "", call="save", at=Site("a.py", 1))
    assert refusal("save()\n", odd) == "its name is not that of an argument"
