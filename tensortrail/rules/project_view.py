"""What a rule sees of the project around a file. The analyzer implements it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from tensortrail.rules.project_facts import GuardedStatement, Namesake, ProjectCall, SavedFile


class ProjectView(Protocol):
    """Questions about the other files, which are read only as far as the answer needs it."""

    def passed_in_project(self, call: ast.Call, keyword: str) -> int:
        """How many calls in the package pass the keyword to what has the same name: about as many
        at least as `calls_in_project` gives, and cheap to ask. 0 for functions of torch."""

    def usual_in_project(self, call: ast.Call, keyword: str) -> tuple[int, int]:
        """How many calls of what has the same name pass the keyword, and how many there are, in the
        package or, without one, in the files around; cheap to ask."""

    def gpu_made_default(self) -> tuple[str, int] | None:
        """A file of the package that makes a GPU the default device, and the line where it does;
        or a script beside it, if all scripts there do that use the package and torch."""

    def is_for_current_gpu(self) -> bool:
        """The code around moves things by a bare `.cuda()` as often as to a device that it names:
        whoever runs it chooses the GPU for the whole process."""

    def numbered_gpu(self) -> tuple[str, int] | None:
        """A file of the same program that names another GPU than the first, by its path from the
        top of the project, and the line: whoever runs it may work on one that is not the current
        one. Of the program are the files that come to import this one, and those beside it."""

    def sets_current_gpu(self) -> bool:
        """Some file of the project calls `torch.cuda.set_device`: its processes have a GPU each,
        which is the current one."""

    def launches_on_gpu_of_tensors(self) -> bool:
        """Some file of the project makes the GPU of a tensor the current one for a kernel. If its
        processes have a GPU each, it is this file that has to."""

    def names_other_backend(self) -> bool:
        """A file that comes to import this one names `"gloo"` or `"mpi"`: collectives may take
        tensors of the CPU."""

    def may_use_gpu(self) -> bool:
        """The file, or one that comes to import it, names a type of GPU or what of a library
        puts models on one; a text that is no file may."""

    def may_use_cpu(self) -> bool:
        """The file, or one that comes to import it, asks whether there is a GPU or lets somebody
        choose the CPU; a text that is no file may."""

    def default_set_for(self, name: str) -> bool:
        """A file of the project that names this class or function makes a GPU the default."""

    def builds_on_device(self) -> bool:
        """Somewhere in the code around objects are made under `with torch.device(device):`, which
        need not be moved later."""

    def is_set_in_project(self, attribute: str) -> bool:
        """Somewhere in the package an attribute of that name may get another value than False or
        None, on whatever object."""

    def is_property_in_project(self, name: str) -> bool:
        """Some class of the package has a property of that name, which is not called."""

    def is_of_project(self, call: ast.Call) -> bool:
        """What is called is a function or class of the project, by its name: no method."""

    def has_programs(self) -> bool:
        """A file of the project says what it does when it is run: a folder of modules without one
        may be for other projects."""

    def is_installed(self) -> bool:
        """The project says how it is installed: others use it, and may go on after an exception.
        True too where that cannot be told."""

    def is_used(self, node: ast.AST) -> bool:
        """What is run of the project, or handed out by it, comes to the node: something names the
        function or class at the top of the file that the node stands in, or one there that comes
        to it, in a file and a function that are used themselves; and something has the name of its
        method. True too where that cannot be told, as for a script. Not used is too what a
        function does under a parameter that is off, and that no call gives (of a method: no
        `self.method(...)`), or under an attribute that its class sets to False and nothing to
        anything else; what a constructor does only without a parameter that is on, and that no call
        gives; and what a file that others import tries out if it is run itself."""

    def is_for_users(self, node: ast.AST) -> bool:
        """The project is a library, and its users may come to the node: no name around it is
        private, or something of the project comes to it."""

    def calls_in_project(self, call: ast.Call) -> Sequence[ProjectCall]:
        """Calls of the same function or class in the files of the package, this one among them;
        empty if it is not one of the package, or shares its name with another."""

    def calls_of(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> Sequence[ProjectCall]:
        """The same of a function or class at the top of this file. Calls of others that have its
        name are among them."""

    def saves_in_project(self, path: ast.expr) -> Sequence[SavedFile]:
        """Files that the project writes with `torch.save` under the name that this expression
        gives: by how it ends, or as the same class or file puts it together."""

    def namesakes_of(self, call: ast.Call) -> Sequence[Namesake]:
        """Functions and methods of the package with the name of what is called, whatever has
        them; empty if the name stands for something of a library."""

    def same_moves_in_project(self, statement: ast.stmt) -> Sequence[GuardedStatement]:
        """The statements of other files of the package that read like this one, a move of a part
        of `self` such as `self.unet.to("cpu")`."""
