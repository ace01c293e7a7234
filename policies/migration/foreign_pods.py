"""A pod that was written for another system, as one that asks for a share; and what became of each of its fields."""

import copy
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Protocol

import msgspec

from policies.contract import (
    CONTAINER_ANNOTATION_PREFIX,
    DEFAULT_CONTAINER_ANNOTATION,
    MILLI_PER_GPU,
    SHARE_ANNOTATION,
    SHARE_ANNOTATION_ALIAS,
)
from policies.errors import quoted
from policies.quantity import whole
from policies.share import Share

Fields = dict[str, Any]
MIB = 1024 * 1024


class OpenError(Exception):
    """Something without an equal here, for a person to decide; the message says what, and which ways there are."""


class Translation(msgspec.Struct):
    """What a pod becomes. The pod given is not changed."""

    pod: Fields
    became: list[str]  # a sentence for each field
    undecided: list[str]  # not empty: the pod cannot be translated


class Amounts(msgspec.Struct):
    """What a container asks for of another system: whole numbers by resource, and sentences about them."""

    numbers: dict[str, int]
    became: list[str]

    def say(self, resource: str, told: str) -> None:
        """Say what became of a resource."""
        self.became.append(f"{resource}: {self.numbers[resource]} {told}")


class System(Protocol):
    """Another system whose pods can be translated."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Its extended resources."""
        ...

    def share(self, pod: Fields, amounts: Amounts) -> Share | None:
        """
        Say which share a container asks for, None for none; sentences about it are added to *amounts*.

        Raises:
            OpenError: If no share is equal.
        """
        ...

    def others(self, pod: Fields) -> Iterator[str]:
        """Change what else of *pod* belongs to the other system, and yield a sentence for each."""
        ...


def translate_pod(pod: Fields, system: System) -> Translation:
    """Translate *pod*, whose fields have the types of the Kubernetes API."""
    made = Translation(copy.deepcopy(pod), [], [])
    shares: dict[str, Share] = {}
    for container in containers_of(made.pod):
        name = container["name"]
        shown = f"container {quoted(name)}"
        try:
            amounts = Amounts(_taken(container, system.resources), [])
            share = system.share(made.pod, amounts) if amounts.numbers else None
        except OpenError as error:
            made.undecided.append(f"{shown}: {error}")
            continue
        made.became += [f"{shown}: {told}" for told in amounts.became]
        if share is not None:
            shares[name] = share
    made.became += [*_annotate(made.pod, shares), *system.others(made.pod)]
    return made


def containers_of(pod: Fields) -> Iterator[Fields]:
    """All containers, in the order in which they start."""
    for group in ("initContainers", "containers"):
        yield from pod["spec"].get(group) or ()


def variables_of(pod: Fields) -> Iterator[tuple[str, str]]:
    """The name of each container and variable in its `env`."""
    for container in containers_of(pod):
        for variable in container.get("env") or ():
            yield container["name"], variable["name"]


def part_of(amount: int, total: int) -> tuple[Share, str]:
    """
    Say which part of one GPU *amount* of *total* bytes is, in whole thousandths, rounded up; and the sentence for it.

    Raises:
        OpenError: If it is more than a GPU has.
    """
    if amount > total:
        raise OpenError(f"{mib(amount)} is more than the {mib(total)} of --gpu-memory: name the memory of its GPUs")
    exact = Fraction(amount * MILLI_PER_GPU, total)
    share = Share(-(-amount * MILLI_PER_GPU // total))
    rounded = "" if exact.denominator == 1 else ", rounded up to a thousandth"
    return share, f"{mib(amount)} of the GPU's {mib(total)} is {share}{rounded}"


def mib(amount: int) -> str:
    """Write bytes in MiB, as nvidia-smi does."""
    number, rest = divmod(amount, MIB)
    return f"{number} MiB" if not rest else f"{amount} bytes"


def _taken(container: Fields, names: tuple[str, ...]) -> dict[str, int]:
    """Take resources out of a container; a limit counts before a request."""
    resources = container.get("resources") or {}
    amounts: dict[str, Any] = {}
    for group in ("limits", "requests"):
        held = resources.get(group) or {}
        found = [name for name in names if name in held]
        for name in found:
            amounts.setdefault(name, held.pop(name))
        if found and not held:
            del resources[group]
    if amounts and not resources:
        del container["resources"]
    return {name: _whole(name, amount) for name, amount in amounts.items()}


def _whole(name: str, amount: Any) -> int:
    number = whole(amount)
    if number is None:
        raise OpenError(f"{name} is {quoted(str(amount))}, which is not a whole number: correct it")
    return number


def _annotate(pod: Fields, shares: Mapping[str, Share]) -> Iterator[str]:
    """Write the shares on the pod; what it says already stays."""
    if not shares:
        return
    metadata = pod["metadata"] = pod.get("metadata") or {}
    annotations = metadata["annotations"] = metadata.get("annotations") or {}
    apps = [one["name"] for one in pod["spec"].get("containers") or ()]
    bare = shares.keys() == {annotations.get(DEFAULT_CONTAINER_ANNOTATION) or next(iter(apps), None)}
    for name, share in shares.items():
        key = SHARE_ANNOTATION if bare else f"{CONTAINER_ANNOTATION_PREFIX}{name}"
        own = next((one for one in (key, SHARE_ANNOTATION_ALIAS) if one in annotations and (bare or one == key)), None)
        if own is not None:
            yield f"container {quoted(name)}: {own}: {quoted(str(annotations[own]))} is on the pod already, and stays"
            continue
        annotations[key] = str(share)
        yield f'container {quoted(name)}: gets the annotation {key}: "{share}"'
