"""Which gpu-share the parts of a cluster run, beside the one that looks; and what only a newer one may understand."""

import re
from collections.abc import Iterator
from typing import Final

from console.objects import Pod
from console.seen import COMPONENT_LABEL, Newer, Seen

_LABEL: Final = "app.kubernetes.io/version"  # of our own pods
_RELEASE: Final = re.compile(r"(\d+\.\d+\.\d+)(?:[-+.a-z].*)?")
# What is said in policies/reading of names and words that a later version may have, and of nothing else: a value of
# another type is not in quotes there.
_OF_LATER: Final = re.compile(r': unknown field: |: expected .*, got ".*": (write one of them|did you mean [^ ]+\?)$')


def other_version(seen: Seen, program: str) -> str:
    """Say which gpu-share runs somewhere, where that is not *program*; empty if none does, or it is not known."""
    return next((f"{where} runs {which}, and this is {program}" for where, which, _ in _others(seen, program)), "")


def newer_version(seen: Seen, program: str) -> str:
    """Say it of one that may be newer than *program*: it can know what this one does not."""
    found = ((where, which) for where, which, runs in _others(seen, program) if not _is_older(runs, program))
    return next((f"{where} runs {which}, and this is {program}" for where, which in found), "")


def may_be_of_later(problem: str) -> bool:
    """Whether what is wrong with a policy file may be right in a later version: a field, or one of several words."""
    return _OF_LATER.search(problem) is not None


def _others(seen: Seen, program: str) -> Iterator[tuple[str, str, str]]:
    """Yield where another version runs, how that is said, and which one; that is empty if it is only newer."""
    if not program:
        return
    for node in seen.nodes:
        runs = node.state.program if node.state else ""
        if runs and runs != program:
            yield node.name, f"gpu-share {runs}", runs
        elif isinstance(node.silent, Newer):
            yield node.name, "a newer gpu-share", ""
    if not _labels_hold(seen):
        return
    for pod in seen.parts_to_run:
        runs = _labelled(pod)
        # Whoever installs may write the label anew: what is no release of gpu-share says nothing of its version.
        if _RELEASE.fullmatch(runs) and runs != program and pod.metadata.labels.get(COMPONENT_LABEL) == "webhook":
            yield str(pod.metadata.name), f"gpu-share {runs}", runs


def _labels_hold(seen: Seen) -> bool:
    """Whether no node runs another version than its pod is labelled with: whoever installs may label all pods alike."""
    labelled: dict[tuple[str, str], set[str]] = {}
    for pod in seen.parts:  # also those that are about to end, which may be who answered
        if version := _labelled(pod):
            of = (str(pod.spec.node_name), pod.metadata.labels.get(COMPONENT_LABEL, ""))
            labelled.setdefault(of, set()).add(version)
    told = {(node.name, node.state.part): node.state.program for node in seen.nodes if node.state is not None}
    return all(program in labelled.get(of, {program}) for of, program in told.items() if program)


def _labelled(pod: Pod) -> str:
    return pod.metadata.labels.get(_LABEL, "").removeprefix("v")


def _is_older(version: str, program: str) -> bool:
    """Whether a version is surely older: of the same release, one before it or behind, nobody knows."""
    one, other = _RELEASE.fullmatch(version), _RELEASE.fullmatch(program)
    return one is not None and other is not None and _numbers(one[1]) < _numbers(other[1])


def _numbers(release: str) -> list[int]:
    return [int(one) for one in release.split(".")]
