"""The policies of a cluster: the ConfigMaps that its webhook reads, read as it does."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from console.api_server import ApiServer, UnseenError, path_of
from console.objects import Metadata
from console.pod_templates import Resources
from console.policy_sources import Sources
from console.seen import Unseen
from console.words import Shown
from policies.cluster import Cluster
from policies.contract import NAMESPACE
from policies.errors import PolicyError, Problem
from policies.policy import Policy
from policies.policy_set import PolicySet
from policies.policy_volume import ConfigMapSource, VolumeError, files_of, named
from policies.reading.directory import write_volume
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import PolicyStore
from program.structs import decoder

RIGHT: Final = f"list configmaps in namespace {NAMESPACE}"
_MOST_NAMED: Final = 10  # ConfigMaps, of all the files

for _kind in (Cluster, Policy):  # two requests to the page may read them at once
    decoder(_kind)

Read = tuple[PolicySet | None, tuple[str, ...]]  # what is in force, and what is wrong with the files


class ConfigMap(msgspec.Struct, frozen=True, kw_only=True):
    """A ConfigMap."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = msgspec.field(default={}, name="binaryData")  # files that are not UTF-8

    @property
    def files(self) -> dict[str, bytes]:
        """What is in it, as it is in a volume."""
        return {name: text.encode() for name, text in self.data.items()} | self.binary_data


def config_maps(api: ApiServer) -> dict[str, ConfigMap]:
    """
    Read those in the namespace of gpu-share, of which its webhook reads some, by name.

    Raises:
        UnseenError: If they cannot be read.
    """
    listed = api.all(ConfigMap, path_of("api", "v1", "namespaces", NAMESPACE, "configmaps"))
    return {str(one.metadata.name): one for one in listed}


def read_policies(api: ApiServer, sources: Iterable[ConfigMapSource]) -> Read:
    """
    Read the policies from their *sources*, and every problem in them.

    Raises:
        UnseenError: If the ConfigMaps cannot be read.
    """
    return policies_in(config_maps(api), sources)


def policies_in(listed: Mapping[str, ConfigMap], sources: Iterable[ConfigMapSource]) -> Read:
    """
    Say what is in force by those of the ConfigMaps *listed* that are *sources*, and every problem in them.

    Raises:
        UnseenError: If there is no directory to read files from.
    """
    files, places, missing = dict[str, bytes](), dict[str, str](), list[Shown]()
    for source in sources:
        try:
            found = _files(source, listed)
        except VolumeError as error:
            missing.append(Shown(str(error)))
        else:
            files |= found
            places |= dict.fromkeys(found, named([source]))
    # Without one of them defaults are not in force either: no pod that mounts it starts.
    return (None, tuple(dict.fromkeys(missing))) if missing else in_force(files, places)


def read_cluster(api: ApiServer, sources: Iterable[ConfigMapSource]) -> Cluster:
    """
    Read what `_cluster.yaml` says; the defaults where there is none.

    Raises:
        UnseenError: If that cannot be said: it cannot be read, or is broken.
    """
    try:
        listed = config_maps(api)
    except UnseenError as error:
        raise UnseenError(f"_cluster.yaml cannot be read, which takes the right to {RIGHT}: {error}") from error
    current, problems = in_force(_cluster_file(listed, sources))
    if current is None or problems:
        raise UnseenError(problems[0])
    return current.cluster


def resources_of_shares(api: ApiServer, sources: Sources, of_nodes: Iterable[str]) -> Resources:
    """Read how shares are called: where pods are denied, there may be no node yet that says it."""
    names = frozenset(filter(None, of_nodes))
    if isinstance(sources, Unseen):
        return Resources(Cluster(), names, unread=sources.sentence)
    try:
        return Resources(read_cluster(api, sources), names)
    except UnseenError as error:
        return Resources(Cluster(), names, unread=str(error))


def _files(source: ConfigMapSource, listed: Mapping[str, ConfigMap]) -> dict[str, bytes]:
    found = listed.get(source.name)
    return files_of(source, found.files if found else None)


def _cluster_file(listed: Mapping[str, ConfigMap], sources: Iterable[ConfigMapSource]) -> dict[str, bytes]:
    """Find the one that counts; none where no source is there, as before an installation."""
    file, missing, is_installed = dict[str, bytes](), "", False
    for source in sources:
        try:
            files = _files(source, listed)
        except VolumeError as error:
            missing = str(error)  # it may be in there
            continue
        is_installed = True
        if CLUSTER_FILE in files:
            file, missing = {CLUSTER_FILE: files[CLUSTER_FILE]}, ""
    if missing and is_installed:
        raise UnseenError(f"{CLUSTER_FILE} cannot be read: {missing}")
    return file


def in_force(files: Mapping[str, bytes], places: Mapping[str, str] | None = None) -> Read:
    """
    Say what would be in force by policy files alone, and what is wrong with them, of which *places* say where each is.

    Where a file is broken, a webhook may go on by the last good one, which is nowhere to be read.

    Raises:
        UnseenError: If there is no directory to read them from.
    """
    try:
        return _read(files, places or {})
    except OSError as error:
        reason = error.strerror or "no temporary directory can be written to"
        raise UnseenError(
            f"policies are read from files: {reason}: mount a volume at /tmp, or name one by TMPDIR"
        ) from error


def _read(files: Mapping[str, bytes], places: Mapping[str, str]) -> Read:
    with tempfile.TemporaryDirectory() as directory:
        write_volume(Path(directory), files)
        try:
            store = PolicyStore(Path(directory))
        except PolicyError as error:
            return None, tuple(_placed(one, directory, places) for one in error.problems)
        return store.current, tuple(_placed(one.problem, directory, places) for one in store.troubles)


def _placed(problem: Problem, directory: str, places: Mapping[str, str]) -> Shown:
    """Write a problem with a file, or all, of a temporary *directory* by where it is; else by its name."""
    told = str(problem)
    for name in sorted(places, key=len, reverse=True):  # one can begin like another
        told = told.replace(f"{directory}/{name}", f"{places[name]}/{name}")
    every = [*dict.fromkeys(places.values())] or ["the policies"]
    more = ["others"] if len(every) > _MOST_NAMED else []
    return Shown(told.replace(f"{directory}/", "").replace(directory, " and ".join([*every[:_MOST_NAMED], *more])))
