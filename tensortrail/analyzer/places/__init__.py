"""Where tensors lie, inferred from code as a type checker infers types.

This runs over a function of its own, beside `analyzer.flow`: its values are sets of places that
remember under which condition they hold, with ranks and members of boxes. That costs more than
kinds do, and is paid only for functions that a rule asks about. Names, classes, files and the
syntax tree are those of the core.
"""
