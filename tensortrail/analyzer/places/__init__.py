"""Where tensors lie, inferred from code as a type checker infers types.

A rule asks `index` for a function. `statements` runs it, `expressions` and `calls` say what is
held where, `parameters`, `attributes` and `results` what it gets from outside and gives back.

This is a run of its own, beside that of `values`: what it holds are sets of places that remember
under which condition they hold, with ranks and members of boxes. That costs more than kinds do,
and is paid only for functions that a rule asks about. Names, classes, files and the syntax tree
are those of the core.
"""
