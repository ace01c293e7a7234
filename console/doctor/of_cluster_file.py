"""The check that `_cluster.yaml` is the administrators', whichever ConfigMaps are in the volume of the policies."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from console.doctor.installation import Installation
from console.doctor.parts import COMPONENTS, component_of, no_parts, parts
from console.doctor.verdict import Check, Verdict, not_seen, unknown, warn
from console.seen import OUR_PODS
from console.words import Shown
from policies.contract import CLUSTER_CONFIG_MAP, POLICIES_VOLUME
from policies.policy_volume import ConfigMapSource, key_of, sources_of
from policies.reading.layers import CLUSTER_FILE

_Keys = Mapping[str, AbstractSet[str]]  # of ConfigMaps, by name


def given(on: Installation) -> Verdict:
    """See that no other ConfigMap can give `_cluster.yaml` than the one that is for it."""
    after: dict[tuple[str, str], set[str]] = {}
    missing: dict[str, None] = {}
    unclear = set[str]()
    for pod in parts(on.seen, *COMPONENTS):
        sources = sources_of(pod.spec.volumes)
        if sources is not None:
            at = _administrators(sources, on.config_map_keys)
            for one in _after(sources, at, on.config_map_keys):
                after.setdefault(one, set()).add(component_of(pod))
            missing |= dict.fromkeys(_before(sources, at, on.config_map_keys))
        elif any(one.name == POLICIES_VOLUME for one in pod.spec.volumes):
            unclear.add(component_of(pod))
    told = [f"{who} in the volume of {' and '.join(sorted(of))}: {what}" for (who, what), of in after.items()]
    hints = ["put the further one before the other, as the page says, or name its files by items"] if after else []
    hints += [f"write a {CLUSTER_FILE} into the one that has none, an empty one at least"] if missing else []
    if not (told or missing):
        why = f"{' and '.join(sorted(unclear))} read what is not made of ConfigMaps alone"
        return not_seen(on, "policies") or (unknown(why) if unclear else warn(hint=""))
    return warn(*told, *missing, hint="; ".join(hints))


def _administrators(sources: Sequence[ConfigMapSource], keys: _Keys) -> int:
    """Say which of *sources* is for `_cluster.yaml`: by its name, else the first that has it; the last if none has."""
    by_name = [at for at, one in enumerate(sources) if one.name == CLUSTER_CONFIG_MAP] or [
        at for at, one in enumerate(sources) if CLUSTER_CONFIG_MAP in one.name
    ]
    having = (at for at, one in enumerate(sources) if _has_it(one, keys))
    return by_name[-1] if by_name else next(having, len(sources) - 1)


def _after(sources: Sequence[ConfigMapSource], ours: int, keys: _Keys) -> Iterator[tuple[str, str]]:
    for one in sources[ours + 1 :]:
        if key_of(one, CLUSTER_FILE):
            told = f"its {CLUSTER_FILE} counts" if _has_it(one, keys) else f"a {CLUSTER_FILE} in it would count"
            yield Shown(f"{one.name} stands after {sources[ours].name}"), told


def _before(sources: Sequence[ConfigMapSource], ours: int, keys: _Keys) -> Iterator[str]:
    if not keys or _has_it(sources[ours], keys):
        return
    for one in sources[:ours]:
        if key_of(one, CLUSTER_FILE):
            told = f"that of {one.name} counts" if _has_it(one, keys) else f"one in {one.name} would count"
            yield Shown(f"{sources[ours].name} has no {CLUSTER_FILE}: {told}")


def _has_it(source: ConfigMapSource, keys: _Keys) -> bool:
    return key_of(source, CLUSTER_FILE) in keys.get(source.name, ())


CLUSTER_FILE_GIVEN: Final = Check(
    name="policies-cluster",
    says="no further ConfigMap can give _cluster.yaml",
    page="policies.md#further-configmaps",
    judge=given,
    absent=no_parts,
    rests_on=(OUR_PODS,),
)
