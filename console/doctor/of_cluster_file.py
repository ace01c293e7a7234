"""The check that `_cluster.yaml` is the administrators', whichever ConfigMaps are in the volume of the policies."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from console.doctor.installation import Installation
from console.doctor.parts import component_of, no_parts, parts
from console.doctor.verdict import Check, Verdict, cut, unknown, warn
from console.objects import Pod
from console.seen import ON_NODES, OUR_PODS
from console.words import Shown
from policies.contract import CLUSTER_CONFIG_MAP, POLICIES_CONFIG_MAP, POLICIES_VOLUME
from policies.policy_volume import ConfigMapSource, key_of, sources_of
from policies.reading.layers import CLUSTER_FILE

_READERS: Final = ("webhook", *ON_NODES)
_Keys = Mapping[str, AbstractSet[str]]  # of ConfigMaps, by name
_HASH: Final = re.compile(r"-[24-9bcdfghkmt]{10}$")  # by which kustomize's generators end the names of ConfigMaps


def given(on: Installation) -> Verdict:
    """See that no other ConfigMap can give `_cluster.yaml` than the one that is for it."""
    after: dict[tuple[str, str], set[str]] = {}
    missing: dict[str, None] = {}
    several: dict[str, None] = {}
    unclear: dict[str, set[str]] = {}
    for pod in parts(on.seen, *_READERS):
        sources = sources_of(pod.spec.volumes)
        if sources is not None:
            may_be = _administrators(sources, on.config_map_keys)
            for one in _after(sources, may_be[-1], on.config_map_keys):
                after.setdefault(one, set()).add(component_of(pod))
            if len(may_be) > 1:
                several[_several([sources[at] for at in may_be], on.config_map_keys)] = None
            else:
                missing |= dict.fromkeys(_before(sources, may_be[-1], on.config_map_keys))
        for why in _unclear(pod, sources, on.config_map_keys):
            unclear.setdefault(why, set()).add(component_of(pod))
    told = [f"{who} in the volume of {' and '.join(sorted(of))}: {what}" for (who, what), of in after.items()]
    hints = ["put the further one before the other, as the page says, or name its files by items"] if after else []
    hints += [f"write a {CLUSTER_FILE} into the one that has none, an empty one at least"] if missing else []
    if not (told or missing):
        whys = [*several, *(f"{' and '.join(sorted(of))} read {what}" for what, of in unclear.items())]
        if not whys and "policies" in on.unseen:
            return unknown(on.unseen["policies"])
        return Verdict(status="unknown" if whys else "ok", found=tuple(cut(whys)))
    return warn(*cut([*told, *missing, *several]), hint="; ".join(hints))


def _unclear(pod: Pod, sources: Sequence[ConfigMapSource] | None, keys: _Keys) -> Iterator[str]:
    """Say what a part reads of which nobody knows what is in it."""
    if sources is None:
        is_there = any(one.name == POLICIES_VOLUME for one in pod.spec.volumes)
        yield "what is not made of ConfigMaps alone" if is_there else f"no volume of the name {POLICIES_VOLUME}"
    elif keys:
        yield from (Shown(f"{one.name}, which is not there") for one in sources if not _is_there(one, keys))


def _administrators(sources: Sequence[ConfigMapSource], keys: _Keys) -> list[int]:
    """Say which of *sources* may be for `_cluster.yaml`: by its name, else those that have it; the last if none has."""
    found = [at for at, one in enumerate(sources) if one.name == CLUSTER_CONFIG_MAP][-1:]
    called = [at for at, one in enumerate(sources) if CLUSTER_CONFIG_MAP in one.name]
    of_policies = {_around(one.name, POLICIES_CONFIG_MAP) for one in sources}
    beside = [at for at in called if _around(sources[at].name, CLUSTER_CONFIG_MAP) in of_policies]
    having = [at for at, one in enumerate(sources) if _has_it(one, keys)]
    return found or beside or called or having or [len(sources) - 1]


def _around(name: str, shipped: str) -> tuple[str, str] | None:
    """What a kustomization has put before and after the *shipped* name, but for the hash; None if it is another."""
    before, found, after = _HASH.sub("", name).rpartition(shipped)
    return (before, after) if found else None


def _several(sources: Sequence[ConfigMapSource], keys: _Keys) -> str:
    """Say which of several counts that may be the administrators': gpu-share cannot know whether it is theirs."""
    *others, last = (one.name for one in sources)
    having = [one.name for one in sources if _has_it(one, keys)]
    told = f"that of {having[-1]} counts" if having else f"a {CLUSTER_FILE} in {last} would count"
    return Shown(f"{', '.join(others)} and {last} may each be for {CLUSTER_FILE}: {told}")


def _after(sources: Sequence[ConfigMapSource], ours: int, keys: _Keys) -> Iterator[tuple[str, str]]:
    for one in sources[ours + 1 :]:
        if key_of(one, CLUSTER_FILE):
            told = f"its {CLUSTER_FILE} counts" if _has_it(one, keys) else f"a {CLUSTER_FILE} in it would count"
            yield Shown(f"{one.name} stands after {sources[ours].name}"), told


def _before(sources: Sequence[ConfigMapSource], ours: int, keys: _Keys) -> Iterator[str]:
    if not keys or not _is_there(sources[ours], keys) or _has_it(sources[ours], keys):
        return
    for one in sources[:ours]:
        if _is_there(one, keys) and key_of(one, CLUSTER_FILE):
            told = f"that of {one.name} counts" if _has_it(one, keys) else f"one in {one.name} would count"
            yield Shown(f"{sources[ours].name} has no {CLUSTER_FILE}: {told}")


def _is_there(source: ConfigMapSource, keys: _Keys) -> bool:
    """Whether pods start with it: not without one that is missing, unless it is optional."""
    return source.optional or source.name in keys


def _has_it(source: ConfigMapSource, keys: _Keys) -> bool:
    return key_of(source, CLUSTER_FILE) in keys.get(source.name, ())


def _no_readers(on: Installation) -> str:
    return no_parts(on) or ("" if parts(on.seen, *_READERS) else "no part that reads policies is to run")


CLUSTER_FILE_GIVEN: Final = Check(
    name="policies-cluster",
    says="no further ConfigMap can give _cluster.yaml",
    page="policies.md#further-configmaps",
    judge=given,
    absent=_no_readers,
    rests_on=(OUR_PODS,),
)
