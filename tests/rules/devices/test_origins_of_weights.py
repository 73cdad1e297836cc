"""How weights, and what belongs to them, came to lie where they do."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

GPU = "cuda"
TRAINED = """\
import torch
from torch import nn
model = nn.Linear(4, 1)
adam = torch.optim.Adam(model.parameters())
model(torch.ones(2, 4)).sum().backward()
adam.step()
model.to("cuda")
model(torch.ones(2, 4, device="cuda")).sum().backward()
adam.step()  # flagged
"""


def test_the_state_of_an_optimizer_follows_the_weights(tmp_path: Path) -> None:
    seen = watched(tmp_path, TRAINED, "DEV502", GPU)
    assert "the state of `Adam` was made on cpu at program.py:6" in seen.only.message
    assert "before the model was moved to cuda:0 at program.py:7" in seen.only.message
    mended = seen.fixed
    assert 'model.to("cuda")\nadam.load_state_dict(adam.state_dict())\n' in mended
    runs_without_findings(tmp_path, mended, "DEV502", GPU)


def test_state_that_was_loaded_before_the_model_moved(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch import nn
    def build():
        net = nn.Linear(4, 1)
        return net, torch.optim.AdamW(net.parameters())
    def step(net, optimizer, device):
        net(torch.ones(2, 4, device=device)).sum().backward()
        optimizer.step()  # flagged
    old, made = build()
    step(old, made, "cpu")
    torch.save(made.state_dict(), folder + "/optimizer.pt")
    net, fresh = build()
    fresh.load_state_dict(torch.load(folder + "/optimizer.pt"))
    net.to("cuda")
    step(net, fresh, "cuda")
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "the state of `AdamW` was read onto cpu" in seen.only.message
    assert "before the model was moved to cuda:0 at program.py:14" in seen.only.message
    assert "`exp_avg of net.weight`" in seen.only.message
    assert seen.only.trail[-1].message.startswith("exp_avg of net.weight on cpu given to")
    assert not seen.only.settings, "another map_location would mend nothing"
    mended = seen.fixed
    assert 'net.to("cuda")\nfresh.load_state_dict(fresh.state_dict())\n' in mended
    runs_without_findings(tmp_path, mended, "DEV502", GPU)


def test_a_copy_that_was_made_before_the_model_moved(tmp_path: Path) -> None:
    source = """\
    import copy
    import torch
    net = torch.nn.Linear(4, 2)
    average = copy.deepcopy(net)
    net.to("cuda")
    with torch.no_grad():
        for mine, own in zip(average.parameters(), net.parameters()):
            mine.lerp_(own, 0.1)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "is a copy of `net.weight`, which was moved to cuda:0 later" in seen.only.message
    assert "moved to cuda:0 later at program.py:5" in seen.only.message
    assert "`copy.deepcopy` made it on cpu at program.py:4" in seen.only.message
    mended = seen.fixed
    assert 'net.to("cuda")\naverage.to("cuda")\n' in mended
    runs_without_findings(tmp_path, mended, "DEV502", GPU)


def test_a_copy_of_a_part_is_no_copy_of_what_is_moved(tmp_path: Path) -> None:
    source = """\
    import copy
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(4, 2))
    average = copy.deepcopy(net[0])
    net.to("cuda")
    with torch.no_grad():
        average.weight.lerp_(net[0].weight, 0.1)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    (change,) = seen.only.fixes
    assert not change.edits
    assert "after the model is moved" in change.description


def test_weights_that_a_load_put_in_place_of_others(tmp_path: Path) -> None:
    source = """\
    import torch
    net = torch.nn.Linear(4, 2)
    weights = {name: value.clone() for name, value in net.state_dict().items()}
    net.to("cuda")
    net.load_state_dict(weights, assign=True)
    net(torch.ones(1, 4, device="cuda"))  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "was on cuda:0 until `load_state_dict(assign=True)`" in seen.only.message
    assert "net.load_state_dict(weights)\n" in seen.fixed


def test_what_an_object_keeps_of_weights_that_moved_later(tmp_path: Path) -> None:
    source = """\
    import torch
    class Average:
        def __init__(self, model):
            self.shadow = {name: each.clone() for name, each in model.state_dict().items()}
        def update(self, model):
            for name, each in model.state_dict().items():
                self.shadow[name].mul_(0.9).add_(each)  # flagged
    model = torch.nn.Linear(4, 1)
    average = Average(model)
    average.update(model.cuda())
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert '`self.shadow["weight"]` comes from `self.shadow = {' in seen.only.message
    assert "at program.py:4, and nothing has moved it to cuda:0 since" in seen.only.message
    (change,) = seen.only.fixes
    assert not change.edits
    assert change.description.startswith("make it on cuda:0 at program.py:4, or move it there")


def test_a_layer_in_a_plain_list_is_not_moved(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(2, 2)
            self.heads = [nn.Linear(2, 1)]
        def forward(self, x):
            return [head(self.body(x)) for head in self.heads]  # flagged
    net = Net().cuda()
    net(torch.ones(1, 2, device="cuda"))
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "`net.heads` is a plain container at program.py:7" in seen.only.message
    assert "`net.heads[0].weight`" in seen.only.message
    assert "self.heads = nn.ModuleList([nn.Linear(2, 1)])" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, "DEV502", GPU)


def test_tied_layers_that_were_moved_apart(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
        def forward(self, x):
            return self.b(self.a(x).to("cuda:1"))  # flagged
    net = Net()
    net.a.to("cuda:0")
    net.b.to("cuda:1")
    net(torch.ones(1, 2, device="cuda:0"))
    """
    seen = watched(tmp_path, source, "DEV502", "cuda:2")
    assert (
        "`net.a.weight` and `net.b.weight` are one parameter: it was moved to cuda:0 at "
        "program.py:11, and then to cuda:1 at program.py:12"
    ) in seen.only.message


def test_a_gradient_from_before_the_move(tmp_path: Path) -> None:
    source = """\
    import torch
    net = torch.nn.Linear(2, 1)
    adam = torch.optim.AdamW(net.parameters())
    loss = net(torch.ones(1, 2)).sum()
    net.to("cuda")
    loss.backward()
    adam.step()  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert (
        "the gradient comes from a forward pass before the weight was moved to cuda:0 at "
        "program.py:5"
    ) in seen.only.message


def test_a_buffer_that_no_load_fills(tmp_path: Path) -> None:
    source = """\
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.arange(2) + 1.0, persistent=False)
            self.layer = torch.nn.Linear(2, 1)
        def forward(self, x):
            return self.layer(x * self.scale)  # flagged
    state = Net().state_dict()
    with torch.device("meta"):
        net = Net()
    net.load_state_dict(state, assign=True)
    net(torch.ones(1, 2))
    """
    seen = watched(tmp_path, source, "DEV502")
    assert "`net.scale` was made on meta with its module, and no load fills it" in seen.only.message


def test_a_layer_that_was_put_into_a_model_on_the_gpu(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch import nn
    class Scaled(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.scale = inner, nn.Parameter(torch.ones(2))
        def forward(self, x):
            return self.inner(x * self.scale)  # flagged
    net = nn.Sequential(nn.Linear(2, 1)).cuda()
    net[0] = Scaled(net[0])
    net(torch.ones(1, 2, device="cuda"))
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "after `Sequential` was moved to cuda:0 at program.py:9" in seen.only.message
    assert "move the model again" in seen.only.fixes[0].description


def test_moves_of_weights_in_a_loop(tmp_path: Path) -> None:
    weights = """\
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(4, 2))
    for weight in net.parameters():
        weight = weight.cuda()
    net(torch.ones(3, 4).cuda())  # flagged
    """
    told = watched(tmp_path, weights, "DEV502", GPU).only
    assert "`net.0.weight` itself was not moved" in told.message
    assert [each.description for each in told.fixes] == [
        "a tensor is not moved in place, a module is: `net.to('cuda:0')`"
    ]
