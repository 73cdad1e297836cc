"""SHD469, `state-not-restored`: what a load asks for, and what it is about."""

from __future__ import annotations

import pytest

from tests.rules.judged import lines

SAVE = """
import torch

class Trainer:
    def content(self):
        return {"model": self.model.state_dict(), "average": self.average.state_dict(),
                "optimizer": self.optimizer.state_dict(), "step": self.step}

    def save(self, path):
        torch.save(self.content(), path)

    def resume(self, path, other):
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
"""


def flagged(*body: str) -> bool:
    return bool(lines("SHD469", SAVE + "".join(f"        {each}\n" for each in body)))


OPTIMIZER = "self.optimizer.load_state_dict(state['optimizer'])"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ((OPTIMIZER, "self.step = state['step']"), True),
        ((OPTIMIZER, "self.step = state.get('step', 0)"), True),
        ((OPTIMIZER, "self.optimizer.zero_grad()"), True),
        ((OPTIMIZER,), False),
        (("self.step = state['step']",), False),
        ((OPTIMIZER, "self.step = state['step']", "return state"), False),
        ((OPTIMIZER, "self.step = state['step']", "other.update(state)"), False),
        ((OPTIMIZER, "self.step = state['step']", "old = state.pop('average', None)"), False),
        ((OPTIMIZER, "self.step = state['step']", "for key in state: print(key)"), False),
    ],
)
def test_what_the_load_asks_for(body: tuple[str, ...], expected: bool) -> None:
    assert flagged(*body) is expected


@pytest.mark.parametrize(("given", "expected"), [("scheduler", [8]), ("other", [])])
def test_the_function_has_the_object(given: str, expected: list[int]) -> None:
    source = f"""
    import torch

    def save(path, model, optimizer, scheduler, step):
        torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(), "step": step}}, path)
    def resume(path, model, optimizer, {given}):
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["step"]
    """
    assert [line for line, _ in lines("SHD469", source)] == expected


@pytest.mark.parametrize(("path", "expected"), [("path", True), ("weights", False)])
def test_it_is_the_same_file(path: str, expected: bool) -> None:
    source = f"""
    import torch

    def main(model, optimizer, scaler, path, weights):
        state = torch.load({path}, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scaler.step(optimizer)
        optimizer.zero_grad()
        torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "scaler": scaler.state_dict()}}, path)
    """
    assert bool(lines("SHD469", source)) is expected


def test_a_function_that_gives_what_it_gives_itself() -> None:
    source = SAVE.replace("return {", "return self.content() if self.plain else {") + (
        "\nclass Kept:\n    def state_dict(self):\n        return self.inner.state_dict()\n\n"
        "    def save(self, path):\n        torch.save(self.state_dict(), path)\n\n"
        "    def resume(self, path):\n        state = torch.load(path)\n"
        "        self.inner.load_state_dict(state['inner'])\n"
    )
    assert not lines("SHD469", source)
