from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.called_unmoved import Unmoved, called_unmoved
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class ModelBesideMoved(Rule):
    """Two models are made side by side, and only one of them is moved.

    ## What it does
    Looks at the models that a function or a constructor makes, if it moves one of them to a device
    (`self.policy = Net(8).to(device)`, `actor.cuda()`). Reports, as a note, another model that
    nothing moves, if

    - it is called with something that was moved to a device; and
    - it is known to be a module, or the code reads its parameters or state dict.

    Not reported: attributes of a module, which it moves itself; classes of torch; a model that is
    passed to a function, put into a list or tuple, or made with a device.

    ## Why is this bad?
    On a GPU the call raises "Expected all tensors to be on the same device": the parameters of the
    other model are on the default device, the CPU. If everything is on the CPU, it works.

    ## Fix safety
    No fix is offered: the other model may be meant for the CPU, and then its inputs are in the
    wrong place.

    ## References
    - pytorch documentation of `torch.nn.Module.to`
    """

    code = "DEV585"
    name = "model-beside-moved"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.MEDIUM
    triggers = ((".to(", "state_dict"), (".to(", "parameters"), (".to(", "eval"), (".to(", "train"),
                (".cuda(", "state_dict"), (".cuda(", "parameters"), (".cuda(", "eval"),
                (".cuda(", "train"))  # fmt: skip
    bad = (
        Bad(
            """\
from nets import Net


class Agent:
    def __init__(self, size, device):
        self.device = device
        self.policy = Net(size).to(device)
        self.target = Net(size)
        self.target.load_state_dict(self.policy.state_dict())

    def values(self, state):
        return self.target(state.to(self.device))

    def act(self, state):
        return self.policy(state.to(self.device)).argmax(-1)
""",
            lines=(8,),
            instead="""\
from nets import Net


class Agent:
    def __init__(self, size, device):
        self.device = device
        self.policy = Net(size).to(device)
        self.target = Net(size).to(device)
        self.target.load_state_dict(self.policy.state_dict())

    def values(self, state):
        return self.target(state.to(self.device))

    def act(self, state):
        return self.policy(state.to(self.device)).argmax(-1)
""",
        ),
        Bad(
            """\
import torch
from nets import Critic, Generator


def train(loader, device):
    generator = Generator()
    critic = Critic()
    generator.to(device)
    optimizers = [torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())]
    for real in loader:
        real = real.to(device)
        noise = torch.randn(len(real), 100, device=device)
        (critic(real) - critic(generator(noise))).mean().backward()
        for each in optimizers:
            each.step()
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
from nets import Net


class Agent:
    def __init__(self, size, device):
        self.policy = Net(size).to(device)
        self.target = Net(size)
        self.target.load_state_dict(self.policy.state_dict())
        for each in (self.target, self.critic):
            each.to(device)

    def values(self, state, device):
        return self.target(state.to(device)), self.policy(state.to(device))
"""
        ),
        Good(
            """\
import torch
from nets import Critic, Generator, prepared


def train(loader, device):
    generator = Generator().to(device)
    critic = Critic()
    critic = prepared(critic, device)
    optimizer = torch.optim.Adam([*generator.parameters(), *critic.parameters()])
    for real in loader:
        critic(real.to(device)).mean().backward()
        optimizer.step()
"""
        ),
        Good(
            """\
from nets import Loss, Net


def step(size, batches, device):
    net, loss = Net(size), Loss()
    net.to(device)
    for x, y in batches:
        loss(net(x.to(device)), y.to(device)).backward()
    return net.state_dict()
"""
        ),
        Good(
            """\
from nets import Critic, Net


class Agent:
    def __init__(self, size, device):
        self.device = device
        self.policy = Net(size).to(device)
        self.critic = self.made(size)
        self.critic.load_state_dict(self.policy.state_dict())

    def made(self, size):
        critic = Critic(size).to(self.device)
        return critic

    def values(self, state):
        return self.critic(state.to(self.device)), self.policy(state.to(self.device))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not in_tests(module):
            for each in called_unmoved(module):
                yield self._reported(module, each)

    def _reported(self, module: Module, left: Unmoved) -> Finding:
        return self.finding(
            module,
            left.made,
            f"nothing moves `{left.name}` before line {left.use.lineno} calls it with a tensor on "
            f"`{module.text(left.device)}`; line {left.move.lineno} moves only `{left.other}`",
            trail=(
                (left.made, "made, and never moved"),
                (left.move, f"`{one_line(module, left.move)}` moves another one"),
                (left.use, "called with something that was moved"),
            ),
        )
