"""What became of a key in the configuration of another system."""

from typing import Final, Literal, NamedTuple

import msgspec

Outcome = Literal["same", "always", "option", "pods", "none", "ignored", "decide"]

MEANINGS: Final[dict[Outcome, str]] = {
    "same": "a field of the policy files does the same",
    "always": "gpu-share does this without a setting",
    "option": "an option of the plugin does the same",
    "pods": "the pods have to say it",
    "none": "nothing here is equal",
    "ignored": "NVIDIA's plugin does not use it either",
    "decide": "you have to decide",
}


class Becomes(NamedTuple):
    """What one value becomes, and the sentence about it."""

    outcome: Outcome
    told: str


class Finding(msgspec.Struct, frozen=True):
    """What became of one key of one configuration."""

    configuration: str  # its name in the ConfigMap; empty for a file of its own
    key: str  # dotted path, such as `sharing.mps.resources[0].replicas`
    line: int  # in the file; 0 if the key is not written, and its default is not that of gpu-share
    value: str  # as its author would recognise it
    outcome: Outcome
    told: str


def same(told: str) -> Becomes:
    """A field of the policy files does it."""
    return Becomes("same", told)


def always(told: str) -> Becomes:
    """Nothing has to be set for it."""
    return Becomes("always", told)


def option(told: str) -> Becomes:
    """An option of the plugin does it."""
    return Becomes("option", told)


def pods(told: str) -> Becomes:
    """The pods say it themselves."""
    return Becomes("pods", told)


def none(told: str) -> Becomes:
    """Nothing is equal to it."""
    return Becomes("none", told)


def ignored(told: str) -> Becomes:
    """NVIDIA's plugin does not use it."""
    return Becomes("ignored", told)


def decide(told: str) -> Becomes:
    """The administrator has to decide."""
    return Becomes("decide", told)
