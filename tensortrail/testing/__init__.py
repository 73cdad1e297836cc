"""Checks for the test suites of others.

A rule over its own examples, and whether it still sees them when they are written otherwise:

from tensortrail.testing import check_examples, run, paraphrases

def test_my_rule():
    check_examples(MyRule)
    for bad in MyRule.bad:
        for other in paraphrases(bad):
            assert run(MyRule, other.source, other.files, other.path), other.name

A wrapper tensor subclass, whether it does what checkpoints, sharding and offloading need:

from tensortrail.testing import check_subclass

def test_my_tensor():
    check_subclass(lambda: MyTensor(torch.randn(64, 64)), except_for=["pin_memory"])
"""

from tensortrail.rules.examples import Bad, Good
from tensortrail.testing.examples import check_examples, check_page, fixed, run
from tensortrail.testing.paraphrases import Paraphrase, paraphrases
from tensortrail.testing.subclasses import check_subclass

__all__ = [
    "Bad",
    "Good",
    "Paraphrase",
    "check_examples",
    "check_page",
    "check_subclass",
    "fixed",
    "paraphrases",
    "run",
]
