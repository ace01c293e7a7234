"""The volume `policies` of our pods: from which ConfigMaps it comes, and which policy files these put in it."""

from collections.abc import Iterable, Mapping
from posixpath import normpath
from typing import Final

import msgspec

from policies.contract import CLUSTER_CONFIG_MAP, NAMESPACE, POLICIES_CONFIG_MAP, POLICIES_VOLUME
from policies.denial import shorten
from policies.errors import GpuShareError

_LONGEST_NAME: Final = 100  # in a sentence


class VolumeError(GpuShareError):
    """A volume that no pod can mount: the sentence says what is not there."""


class KeyToPath(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a ConfigMap, and the path that it has in a volume."""

    key: str = ""
    path: str = ""


class ConfigMapSource(msgspec.Struct, frozen=True, kw_only=True):
    """A ConfigMap in a volume."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()  # none for all of its keys, each under its own name
    optional: bool = False


class Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of several sources of a volume."""

    config_map: ConfigMapSource | None = None  # None if it is something else


class Projected(msgspec.Struct, frozen=True, kw_only=True):
    """Several sources of one volume."""

    sources: tuple[Source, ...] = ()


class ConfigMapVolume(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A volume of a pod, as far as ConfigMaps are in it."""

    name: str = ""
    config_map: ConfigMapSource | None = None
    projected: Projected | None = None


SHIPPED: Final = (ConfigMapSource(name=POLICIES_CONFIG_MAP), ConfigMapSource(name=CLUSTER_CONFIG_MAP))


def sources_of(volumes: Iterable[ConfigMapVolume]) -> tuple[ConfigMapSource, ...] | None:
    """Return the ConfigMaps of the volume `policies` in its order; None where it is not there, or has anything else."""
    volume = next((one for one in volumes if one.name == POLICIES_VOLUME), None)
    if volume is None:
        return None
    sources = volume.projected.sources if volume.projected else ()
    found = [volume.config_map] if volume.config_map else [one.config_map for one in sources]
    known = tuple(one for one in found if one is not None)
    return known if known and len(known) == len(found) else None


def files_of(source: ConfigMapSource, held: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """
    Return the files that a ConfigMap puts in the directory of the volume, where one of a later source replaces them.

    *held* is what the ConfigMap holds by key, None if there is no such ConfigMap.

    Raises:
        VolumeError: If something is missing without which no pod that has the volume starts.
    """
    if held is None:
        if source.optional:
            return {}
        raise VolumeError(f"there is no {named([source])}")
    if not source.items:
        return {**held}
    missing = [one.key for one in source.items if one.key not in held]
    if missing and not source.optional:
        key = shorten(missing[0], _LONGEST_NAME)
        raise VolumeError(f"{named([source])} has no key {key}, which the volume {POLICIES_VOLUME} takes from it")
    placed = {normpath(one.path): held[one.key] for one in source.items if one.key in held}
    return {path: content for path, content in placed.items() if "/" not in path}  # directories are not looked into


def key_of(source: ConfigMapSource, file: str) -> str:
    """Name the key of a ConfigMap that becomes *file* in the directory of the volume; empty if none ever does."""
    return next((one.key for one in source.items if normpath(one.path) == file), "") if source.items else file


def named(sources: Iterable[ConfigMapSource]) -> str:
    """Name the ConfigMaps in a sentence."""
    *others, last = dict.fromkeys(shorten(one.name, _LONGEST_NAME) for one in sources)
    return f"ConfigMap {NAMESPACE}/{' and '.join([', '.join(others), last] if others else [last])}"
