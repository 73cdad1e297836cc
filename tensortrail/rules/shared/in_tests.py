"""What rules of all families ask about the file they look at."""

from __future__ import annotations

from tensortrail.rules.view import Module

_TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittest", "test_utils"})


def in_tests(module: Module) -> bool:
    """The file is test code: what it does wrong, it often does on purpose."""
    parts = module.path.replace("\\", "/").split("/")
    name = parts[-1]
    named = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return named or not _TEST_FOLDERS.isdisjoint(parts[:-1])
