"""The check that `_cluster.yaml` is the administrators', whichever ConfigMaps are in the volume of the policies."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final, NamedTuple, TypeVar

from console.doctor.installation import Installation
from console.doctor.parts import component_of, no_parts, parts
from console.doctor.verdict import OK, Check, Verdict, cut, unknown, warn
from console.objects import Container, Pod
from console.seen import ON_NODES, OUR_PODS
from console.words import Shown
from policies.contract import CLUSTER_CONFIG_MAP, POLICIES_CONFIG_MAP, POLICIES_VOLUME
from policies.policy_volume import ConfigMapSource, key_of, sources_of
from policies.reading.layers import CLUSTER_FILE

_READERS: Final = ("webhook", *ON_NODES)  # as their containers are called, too
_AS_SHIPPED: Final = "/etc/gpu-share/policies"
_OPTION: Final = "--policies"
_VARIABLE: Final = "GPU_SHARE_POLICIES"
_Keys = Mapping[str, AbstractSet[str]]  # of ConfigMaps, by name
_Finding = TypeVar("_Finding")
_HASH: Final = re.compile(r"-[24-9bcdfghkmt]{10}$")  # by which kustomize's generators end the names of ConfigMaps


class _Volume(NamedTuple):
    """The volume of the policies, as parts of gpu-share have it."""

    sources: tuple[ConfigMapSource, ...]
    odd: str = ""  # what it is instead, where it has none


def given(on: Installation) -> Verdict:
    """See that no other ConfigMap can give `_cluster.yaml` than the one that is for it."""
    keys, volumes = on.config_map_keys, _volumes(on)
    known = [(one.sources, _administrators(one.sources, keys), of) for one, of in volumes.items() if one.sources]
    further = _by_finding((finding, of) for one, at, of in known for finding in _after(one, at[-1], keys))
    after = [f"{which} in the volume of {of}: {what}" for (which, what), of in further.items()]
    missing = dict.fromkeys(told for one, at, _ in known if len(at) == 1 for told in _before(one, at[-1], keys))
    several = dict.fromkeys(_several([one[place] for place in at], keys) for one, at, _ in known if len(at) > 1)
    hints = ["put the further one before the other, as the page says, or name its files by items"] * bool(after)
    hints += [f"write a {CLUSTER_FILE} into the one that has none, an empty one at least"] * bool(missing)
    if hints:
        return warn(*cut([*after, *missing, *several]), hint="; ".join(hints))
    unread = _by_finding((what, of) for one, of in volumes.items() for what in _unclear(one, keys))
    unclear = [f"{of} read {what}" for what, of in unread.items()]
    if several or unclear:
        return Verdict(status="unknown", found=tuple(cut([*several, *unclear])))
    return unknown(on.unseen["policies"]) if "policies" in on.unseen else OK


def _volumes(on: Installation) -> dict[_Volume, set[str]]:
    """Name the parts that read policies by what their volume is made of."""
    found: dict[_Volume, set[str]] = {}
    for pod in parts(on.seen, *_READERS):
        found.setdefault(_volume(pod), set()).add(component_of(pod))
    return found


def _by_finding(found: Iterable[tuple[_Finding, set[str]]]) -> dict[_Finding, str]:
    """Name the parts of which each thing is found: in a rollout, parts of one kind have several volumes."""
    all_of: dict[_Finding, set[str]] = {}
    for finding, of in found:
        all_of.setdefault(finding, set()).update(of)
    return {finding: " and ".join(sorted(of)) for finding, of in all_of.items()}


def _volume(pod: Pod) -> _Volume:
    if not _reads_volume(pod):
        return _Volume((), f"{CLUSTER_FILE} from elsewhere than the volume {POLICIES_VOLUME}")
    if sources := sources_of(pod.spec.volumes):
        return _Volume(sources)
    is_there = any(one.name == POLICIES_VOLUME for one in pod.spec.volumes)
    return _Volume(
        (), "what is not made of ConfigMaps alone" if is_there else f"no volume of the name {POLICIES_VOLUME}"
    )


def _reads_volume(pod: Pod) -> bool:
    """Whether it has all of the volume where its program reads policies, and nothing over their `_cluster.yaml`."""
    program = next((one for one in pod.spec.containers if one.name == component_of(pod)), None)
    if program is None:
        return False
    directory = _directory(program)
    mounts = [(_normal(one.mount_path), one) for one in program.volume_mounts]
    around = [(path, one) for path, one in mounts if (directory / CLUSTER_FILE).is_relative_to(path)]
    innermost = max((path for path, _ in around), key=lambda path: len(path.parts), default=None)
    read = [one for path, one in around if path == innermost]
    return innermost == directory and all(one.name == POLICIES_VOLUME and not one.is_part for one in read)


def _directory(program: Container) -> PurePosixPath:
    """Where it reads policies, by its arguments or else by its environment."""
    words = [word for one in (*program.command, *program.args) for word in one.split("=", 1)]
    by_option = [value for word, value in pairwise(words) if word == _OPTION]
    by_variable = [one.value for one in program.env if one.name == _VARIABLE and one.value]
    return _normal([_AS_SHIPPED, *by_variable, *by_option][-1])


def _normal(path: str) -> PurePosixPath:
    """Resolve a path in a container, which is below the root however it begins."""
    return PurePosixPath(normpath(f"/{path.lstrip('/')}"))


def _unclear(volume: _Volume, keys: _Keys) -> Iterator[str]:
    """Say what of a volume nobody knows what is in it."""
    if volume.odd:
        yield volume.odd
    elif keys:
        yield from (Shown(f"{one.name}, which is not there") for one in volume.sources if not _is_there(one, keys))


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
