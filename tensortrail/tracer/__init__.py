"""Records which tensor is where while a program runs, and explains what it saw."""
