"""What `args.device` is, by what `argparse` was told to make of the argument."""

from __future__ import annotations

import pytest

from .snippets import find, module_of

PARSED = """\
import argparse
import torch

parser = argparse.ArgumentParser()
{added}
args = parser.parse_args()
used = args.device
"""


def kinds(source: str) -> set[str]:
    module = module_of(source)
    return {kind.value for kind in module.value_of(find(module, "args.device")).kinds}


@pytest.mark.parametrize(
    "arguments",
    [
        '"--device", type=torch.device',
        '"-d", "--device", type=torch.device, default="cuda"',
        '"--to", dest="device", type=torch.device',
        '"device", type=torch.device',
    ],
)
def test_an_argument_of_that_type_is_a_device(arguments: str) -> None:
    assert kinds(PARSED.format(added=f"parser.add_argument({arguments})")) == {"Device"}


@pytest.mark.parametrize(
    "arguments",
    [
        '"--device", type=torch.device, nargs="+"',
        '"--device", type=torch.device, action="append"',
        '"--device-name", type=torch.device',
        "*names, type=torch.device",
    ],
)
def test_another_one_is_not(arguments: str) -> None:
    assert kinds(PARSED.format(added=f"parser.add_argument({arguments})")) == set()


@pytest.mark.parametrize("arguments", ['"--device", default="cuda"', '"--device", type=str'])
def test_without_another_type_it_is_a_text(arguments: str) -> None:
    assert kinds(PARSED.format(added=f"parser.add_argument({arguments})")) == {"DeviceString"}


def test_two_parsers_that_disagree_say_nothing() -> None:
    added = """\
parser.add_argument("--device", type=torch.device)
argparse.ArgumentParser().add_argument("--device", type=str)"""
    assert kinds(PARSED.format(added=added)) == set()


def test_an_argument_that_is_set_again_is_not_what_was_parsed() -> None:
    again = "\ndef named(each):\n    each.device = str(each.device)\n"
    added = 'parser.add_argument("--device", type=torch.device)'
    assert kinds(PARSED.format(added=added) + again) == set()


def test_the_arguments_are_known_where_they_are_annotated() -> None:
    source = """\
import argparse
import torch

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=torch.device)
    return parser.parse_args()

def run(args: argparse.Namespace):
    return args.device
"""
    assert kinds(source) == {"Device"}


def test_the_arguments_are_known_where_a_function_gives_them() -> None:
    source = """\
import argparse
import torch

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=torch.device)
    return parser.parse_args()

def main():
    args = parse()
    return args.device
"""
    assert kinds(source) == {"Device"}
