"""Entries of `_cluster.yaml` that take the place of a built-in framework, and what is judged no longer for them."""

from collections.abc import Iterable, Iterator
from typing import Final

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework

_BUILT_IN: Final = {one.name: one for one in BUILT_IN}


def no_longer_judged(additions: Iterable[Framework]) -> Iterator[str]:
    """Yield a sentence for each entry without some of the settings of the one that it replaces."""
    for one in additions:
        if one.name in _BUILT_IN and (lost := _settings(_BUILT_IN[one.name]) - _settings(one)):
            yield (
                f"the entry {one.name} replaces the built-in one and leaves out {', '.join(sorted(lost))}: nobody "
                "judges these in pods any more: add them, or give the entry another name"
            )


def _settings(framework: Framework) -> set[str]:
    memory = framework.memory
    return {one.name for one in memory.spellings} | {one.name for one in memory.overridden_by} if memory else set()
