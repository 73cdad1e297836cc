"""Which tensor is where, who put it there, and what to change."""

__version__ = "0.1.0"
