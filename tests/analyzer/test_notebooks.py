"""The cells of a notebook as one program, and a mended program put back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortrail.analyzer.reading.notebooks.magics import original, tamed
from tensortrail.analyzer.reading.python_files import python_of, with_python
from tensortrail.analyzer.reading.source import Unreadable


def notebook(*cells: str | dict[str, Any], indent: int | None = 1, **metadata: Any) -> bytes:
    """As Jupyter writes it; a text is a code cell."""
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": cell.splitlines(keepends=True),
        }
        if isinstance(cell, str)
        else {"id": f"cell-{number}", "metadata": {}, **cell}
        for number, cell in enumerate(cells)
    ]
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, indent=indent, ensure_ascii=False) + "\n").encode()


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass#~%matplotlib inline\nx = 1"),
        ("if x:\n    !ls $(pwd)\n", "if x:\n    pass#~!ls $(pwd)\n"),
        ("files = !ls *.py", "files = None#~!ls *.py"),
        ("x.shape?", "pass#~x.shape?"),
        ("?x\n??y", "pass#~?x\npass#~??y"),
        ("!echo 'it\nx = 1", "pass#~!echo 'it\nx = 1"),
        ("!pip install a \\\n  b\nx = 1", "pass#~!pip install a \\\npass#~  b\nx = 1"),
        ("!run \\\n  --of b-2.8b\nx = 1", "pass#~!run \\\npass#~  --of b-2.8b\nx = 1"),
        ("pip install torch==2.13.0", "pass#~pip install torch==2.13.0"),
        ("%%time\nx = f()", "pass#~%%time\nx = f()"),
        ("\n%%capture out\n%cd it's\ny = 2", "\npass#~%%capture out\npass#~%cd it's\ny = 2"),
        ('s = """\n%not a magic\n"""\ny = (1\n% 2)', 's = """\n%not a magic\n"""\ny = (1\n% 2)'),
        ("pass#~mine", "pass#~pass#~mine"),
        ("x = await f()", "x = await f()"),
    ],
)
def test_magics_are_put_aside_and_come_back(text: str, python: str) -> None:
    cell = tamed(text)
    assert (cell.text, cell.error) == (python, "")
    assert original(cell.text) == text


@pytest.mark.parametrize("magic", ["%%bash", "%%html", "%%writefile a.py", "%%", "%%python3"])
def test_cells_that_are_run_elsewhere_are_none_of_ours(magic: str) -> None:
    assert not tamed(f"{magic}\nif x then").is_python


LINES = ("%a b", "!c (", "x = 1", "x = !d", "if x:", "    %e", "    y = 2", "f?", "'''", "\\")


@given(st.lists(st.sampled_from([*LINES, "    !g \\", "pass#~", ""])))
def test_whatever_can_be_read_comes_back(lines: list[str]) -> None:
    text = "\n".join(lines)
    cell = tamed(text)
    if not cell.error and cell.is_python:
        assert original(cell.text) == text


IN_R = {"vscode": {"languageId": "r"}}
LAYOUTS = {
    "jupyter": notebook("x = 1\ny = 'ä'\n", {"cell_type": "markdown", "source": "# x"}, "z = 3"),
    "compact": notebook("x = 1\ny = 2", "z = 3", indent=None),
    "one text": json.dumps({
        "nbformat": 4, "metadata": {}, "cells": [
            {"cell_type": "code", "source": "x = 1\ny = '\u00e4'\n"},
            {"source": [], "cell_type": "code"}, {"source": "z = 3", "cell_type": "code"},
        ]}).encode(),
    "odd": b'\xef\xbb\xbf{ "nbformat" :4,"cells":[ {"cell_type":"code",\r\n"source" : [ '
           b'"x = 1\\n" ,"y\\u0020= 2\\n" ,"z = 3"\t]  }] }',
}  # fmt: skip


@pytest.mark.parametrize("data", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_only_the_changed_line_changes(data: bytes) -> None:
    program = python_of("a.ipynb", data)
    assert with_python("a.ipynb", data, program) == data
    changed = with_python("a.ipynb", data, program.replace(b"z = 3", b"z = 4"))
    assert changed == data.replace(b"z = 3", b"z = 4")
    longer = with_python("a.ipynb", data, program.replace(b"x = 1", b"w = 0\nx = 1"))
    assert json.loads(longer.removeprefix(b"\xef\xbb\xbf"))
    assert longer.replace(b"w = 0\\n", b"", 1).replace(b'"",', b"").count(b"x = 1") == 1
    assert python_of("a.ipynb", longer).count(b"w = 0\nx = 1") == 1


def test_new_lines_are_written_as_the_others() -> None:
    data = notebook("x = 1\ny = 2\n", "z = 'ä'\n")
    program = python_of("a.ipynb", data)
    after = with_python("a.ipynb", data, program.replace(b"x = 1\n", b"x = 1\nw = '\xc3\xa4'\n"))
    assert after == notebook("x = 1\nw = 'ä'\ny = 2\n", "z = 'ä'\n")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not a notebook of format 4"),
        (b"{}", "it names no format"),
        (b'{"nbformat": 3, "worksheets": []}', "a notebook of format 3, which was not checked"),
        (b'{"nbformat": 5, "cells": []}', "Jupyter does not open this notebook: `nbformat` is 5"),
        (b'{"nbformat": 1e400, "cells": []}', "not a notebook of format 4"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "cell 1 is not text"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code"', "not a notebook"),
        (b'{"nbformat": 4, "cells": {}}', "[ expected"),
        (b'{"nbformat": 4, "x": ' + b"[" * 100_000, "nested too deeply"),
        (b"\xff", "not a notebook"),
    ],
)
def test_what_is_no_notebook_says_so(data: bytes, told: str) -> None:
    with pytest.raises(Unreadable) as raised:
        python_of("a.ipynb", data)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        notebook("x <- 1", language_info={"name": "R"}),
        notebook("x = 1", kernelspec={"language": "julia", "name": "julia-1.9"}),
        notebook({"cell_type": "code", "source": "x <- 1", "metadata": IN_R}),
        notebook({"cell_type": "raw", "source": "x"}),
    ],
)
def test_other_languages_are_left_alone(data: bytes) -> None:
    assert python_of("a.ipynb", data) == b"#~~ notebook\n"


def test_it_reads_what_nbformat_writes(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_markdown_cell("# t"), nbformat.v4.new_code_cell("x = 1\n%pwd")]
    file = tmp_path / "a.ipynb"
    nbformat.write(made, file)
    data = file.read_bytes()
    program = python_of("a.ipynb", data)
    assert program.endswith(b"\nx = 1\npass#~%pwd\n")
    after = with_python("a.ipynb", data, program.replace(b"x = 1", b"x = 2"))
    file.write_bytes(after)
    again = nbformat.read(file, 4)
    nbformat.validate(again)
    assert again.cells[1].source == "x = 2\n%pwd"
