"""What a function is given, what it gives back, and who calls it.

`world` is what the inference of a function asks of the file and project around it."""
