"""What an attribute or the result of a method says of a module."""

from __future__ import annotations

import ast

import pytest

from tensortrail.analyzer.places.attributes.moved_attributes import the_module_itself


@pytest.mark.parametrize(
    ("call", "model"),
    [
        ("self.net.eval().requires_grad_(False)", "self.net"),
        ("net", "net"),
        ("net.clone()", "net.clone()"),
    ],
)
def test_methods_that_give_the_module_back(call: str, model: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert ast.unparse(the_module_itself(node)) == model
