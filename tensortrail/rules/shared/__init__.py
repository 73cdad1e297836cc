"""What rules of several families ask of a piece of code or of a run."""
