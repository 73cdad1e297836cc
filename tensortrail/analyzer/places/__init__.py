"""Where tensors lie, inferred from code as a type checker infers types.

A rule asks `index` for a function. `statements` runs it, `expressions` and `calls` say what is
held where. What a function gets from outside and gives back is in `functions`, what an object keeps
in `attributes`, how places are joined and combined in `held`, names of libraries in `libraries`.

This is a run of its own, beside that of `values`: what it holds are sets of places that remember
under which condition they hold, with ranks and members of boxes. That costs more than kinds do,
and is paid only for functions that a rule asks about. Names, classes, files and the syntax tree
are those of the core.
"""
