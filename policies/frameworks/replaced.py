"""Entries of `_cluster.yaml` that take the place of a built-in framework, and what of that is judged no longer."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework

_BUILT_IN: Final = {one.name: one for one in BUILT_IN}


def no_longer_judged(additions: Sequence[Framework]) -> Iterator[str]:
    """Yield a sentence for each entry without some of the settings of the one that it replaces."""
    replaced = {one.name for one in additions}
    judged = set(chain(*map(_settings, additions), *(_settings(one) for one in BUILT_IN if one.name not in replaced)))
    for name in sorted(replaced.intersection(_BUILT_IN)):
        if lost := [setting for key, setting in _settings(_BUILT_IN[name]).items() if key not in judged]:
            yield (
                f"the entry {name} replaces the built-in one, of which {', '.join(dict.fromkeys(lost))} are judged no "
                "longer, or otherwise: give the entry another name, and both are there"
            )


def _settings(framework: Framework) -> dict[object, str]:
    """Name what is judged of a framework, by all that tells how it is found: settings, and prefixes of others."""
    memory = framework.memory
    found: dict[object, str] = {one: one for one in framework.option_prefixes}
    found |= {(memory.of, memory.of_free, one): one.name for one in memory.spellings} if memory else {}
    for one in memory.overridden_by if memory else ():
        where = framework.name if one.general else ""  # other programs' arguments of this name count for nothing
        found[where, msgspec.structs.replace(one, source="anywhere")] = one.name
    return found
