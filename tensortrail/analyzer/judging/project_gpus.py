"""What rules ask a file about the GPUs that its project uses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import top_of_project
from tensortrail.analyzer.facts.texts.chosen_gpus import (
    FOLLOWS_TENSOR,
    LAUNCHES_BY_TENSOR,
    SETS_GPU,
    numbered_gpu,
)
from tensortrail.analyzer.facts.texts.customs import GPU, MAKE_DEFAULT, makes_default
from tensortrail.analyzer.facts.texts.programs import MOST, imported
from tensortrail.analyzer.facts.texts_asked import Searched, is_in
from tensortrail.analyzer.judging.around import (
    around,
    around_program,
    folder_of,
    is_so_in,
    package_of,
)

_MOST_FOR_A_CUSTOM = 8
"""Files on which it rests that something is usual in a project."""


class AsksForGpus:
    """The part of a `Module` that answers where the programs of its project run."""

    def gpu_made_default(self) -> tuple[str, int] | None:
        file = cast("ProjectFile", self)
        folder = around(file)
        if folder is None:  # the places know of the file itself
            return None
        made = file.project.customs.gpu_made_default(folder)
        found = next(iter(made.items()), None) or self._made_default_by_scripts()
        if found is None:
            file.absent.update(MAKE_DEFAULT)
        else:
            file.project.rest_on_all_of(file, [found[0]])
        return found

    def _made_default_by_scripts(self) -> tuple[str, int] | None:
        """By all scripts beside the package that import it, such as `train.py`."""
        file = cast("ProjectFile", self)
        package, customs = package_of(file), file.project.customs
        if package is None:
            return None
        top, (above, name) = around_program(file), os.path.split(package)
        made = customs.gpu_made_default(top) if (above or os.curdir) == top else {}
        if not made:
            return None
        scripts = customs.importing_beside(top, name)
        _rest_on_program(file, top, scripts, texts_asked.makes_default, makes_default)
        file.absent.add(name)  # who imports the package
        found = [(each, made[each]) for each in scripts if each in made]
        return found[0] if found and len(found) == len(scripts) else None

    def is_for_current_gpu(self) -> bool:
        file = cast("ProjectFile", self)
        folder = around(file)
        found = file.project.customs.for_current_gpu(folder) if folder is not None else ()
        for path in found[:_MOST_FOR_A_CUSTOM]:
            is_so_in(file, path, texts_asked.on_current_gpu)
        return bool(found)

    def numbered_gpu(self) -> tuple[str, int] | None:
        file = cast("ProjectFile", self)
        if line := numbered_gpu(file.source.data):
            return os.path.basename(file.path), line
        if not os.path.isfile(file.path):
            return None
        name, own = os.path.basename(file.path), os.path.dirname(file.path)
        customs, top = file.project.customs, top_of_project(folder_of(file))
        numbered = customs.numbered_gpus(top)
        program = list(customs.of_one_program(top, file.path)) if numbered else []
        beside = [each for each in numbered if os.path.dirname(each) == own]
        path = next((each for each in (*beside, *program) if each in numbered), None)
        if path is None:
            file.absent.update((GPU, name.partition(".")[0]))  # who numbers one, or imports this
            _rest_on_program(file, top, program, texts_asked.numbered_gpu, numbered_gpu)
            return None
        line = numbered[path]
        file.project.rest_on(file, path, lambda: line, texts_asked.numbered_gpu, "")
        if path not in beside:
            before = program[: program.index(path) + 1]
            _rest_on_program(file, top, before, texts_asked.numbered_gpu, numbered_gpu)
        return os.path.relpath(path, top), line

    def sets_current_gpu(self) -> bool:
        return self._writes("set_device", SETS_GPU, texts_asked.sets_gpu)

    def launches_on_gpu_of_tensors(self) -> bool:
        file = cast("ProjectFile", self)
        if LAUNCHES_BY_TENSOR.search(file.source.data):
            return True
        if self._writes("device_of", FOLLOWS_TENSOR, texts_asked.follows_tensor):
            return True
        written = self._writes("device", LAUNCHES_BY_TENSOR, texts_asked.launches_by_tensor)
        return written and not self.sets_current_gpu()

    def _writes(self, word: str, how: re.Pattern[bytes], question: Callable[..., bool]) -> bool:
        """Some file of the project has the word in a place that the pattern tells."""
        file = cast("ProjectFile", self)
        if how.search(file.source.data):
            return True
        if not os.path.isfile(file.path):
            return False
        found = file.project.customs.is_written(around_program(file), word, how)
        return is_so_in(file, found, question, word)

    def names_other_backend(self) -> bool:
        return self._is_in_program(texts_asked.names_other_backend)

    def may_use_gpu(self) -> bool:
        return self._may(texts_asked.names_accelerator, of_many=False)

    def may_use_cpu(self) -> bool:
        return self._may(texts_asked.chooses_cpu, of_many=True)

    def _may(self, question: Searched, of_many: bool) -> bool:
        file = cast("ProjectFile", self)
        if is_in(question, file.source.data) or not os.path.isfile(file.path):
            return True
        return self._is_in_program(question, of_many)

    def _is_in_program(self, question: Searched, of_many: bool = False) -> bool:
        """The file has it in its text, or one that comes to import it. `of_many` is the answer if
        these are too many to look at."""
        file = cast("ProjectFile", self)
        if not os.path.isfile(file.path):
            return False
        top, customs, looked_at = around_program(file), file.project.customs, list[str]()
        found = False
        for path in customs.of_one_program(top, file.path):
            looked_at.append(path)
            if found := is_in(question, customs.text_in(top, path)):
                break
        _rest_on_program(file, top, looked_at, question, partial(is_in, question))
        if found:
            return True
        if len(looked_at) >= MOST:
            return of_many
        file.absent.add(os.path.basename(file.path).partition(".")[0])  # who imports this
        return False

    def default_set_for(self, name: str) -> bool:
        file = cast("ProjectFile", self)
        folder, uses = package_of(file), file.project.uses
        found = uses.named_beside(folder, name, makes_default) if folder is not None else None
        return is_so_in(file, found, texts_asked.makes_default, name)

    def builds_on_device(self) -> bool:
        file = cast("ProjectFile", self)
        folder = around(file)
        found = file.project.customs.builds_on_device(folder) if folder is not None else None
        return is_so_in(file, found, texts_asked.builds_on_device)


def _rest_on_program(
    file: ProjectFile,
    top: str,
    paths: Iterable[str],
    question: Callable[..., object],
    of_text: Callable[[bytes], object],
) -> None:
    """What is found rests on what each of these files says, and on what it imports."""
    customs, project = file.project.customs, file.project
    for path in paths:
        if path == file.path:
            continue
        text = customs.text_in(top, path)
        project.rest_on(file, path, partial(of_text, text), question, "")
        project.rest_on(file, path, partial(imported, text), texts_asked.imports, "")
