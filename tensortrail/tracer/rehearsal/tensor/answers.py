"""Methods of torch's that simulated tensors answer in their own way."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function

ANSWERS: dict[Any, Callable[..., Any]] = {}
"""What torch's own method is -> how a simulated tensor answers it."""


def answers(original: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The method stands for torch's `original`: modes see the call as one of that."""

    def decorate(answer: Callable[..., Any]) -> Callable[..., Any]:
        ANSWERS[original] = answer

        @functools.wraps(answer)
        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if torch._C._is_torch_function_mode_enabled():
                return handle_torch_function(original, (self,), self, *args, **kwargs)
            return answer(self, *args, **kwargs)

        return method

    return decorate
