"""BLAKE2 without OpenSSL, whose libraries take long to load."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
