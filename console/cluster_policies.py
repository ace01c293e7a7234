"""The policies of a cluster: the ConfigMaps that its webhook reads, read as it does."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from console.api_server import ApiServer, UnseenError, path_of
from console.objects import Metadata
from console.pod_templates import Resources
from console.words import Shown
from policies.cluster import Cluster
from policies.contract import CLUSTER_CONFIG_MAP, NAMESPACE, POLICIES_CONFIG_MAP
from policies.errors import PolicyError
from policies.policy import Policy
from policies.policy_set import PolicySet
from policies.reading.store import PolicyStore
from program.structs import decoder

RIGHT: Final = f"list configmaps in namespace {NAMESPACE}"

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


def read_policies(api: ApiServer) -> Read:
    """
    Read the policies, and every problem in them.

    Raises:
        UnseenError: If the ConfigMaps cannot be read.
    """
    own, newest = _config_maps(api)
    if own is None or newest is None:
        # Defaults are not in force either: no pod that mounts it starts.
        missing = POLICIES_CONFIG_MAP if own is None else CLUSTER_CONFIG_MAP
        return None, (f"there is no ConfigMap {NAMESPACE}/{missing}",)
    return in_force({**own.files, **newest.files})


def read_cluster(api: ApiServer) -> Cluster:
    """
    Read what `_cluster.yaml` says; the defaults where there is none.

    Raises:
        UnseenError: If that cannot be said: it cannot be read, or is broken.
    """
    try:
        _, newest = _config_maps(api)
    except UnseenError as error:
        raise UnseenError(f"_cluster.yaml cannot be read, which takes the right to {RIGHT}: {error}") from error
    if newest is None:
        return Cluster()
    current, problems = in_force(newest.files)
    if current is None or problems:
        raise UnseenError(problems[0])
    return current.cluster


def resources_of_shares(api: ApiServer, of_nodes: Iterable[str]) -> Resources:
    """Read how shares are called: where pods are denied, there may be no node yet that says it."""
    names = frozenset(filter(None, of_nodes))
    try:
        return Resources(read_cluster(api), names)
    except UnseenError as error:
        return Resources(Cluster(), names, unread=str(error))


def _config_maps(api: ApiServer) -> tuple[ConfigMap | None, ConfigMap | None]:
    """Find the one of the policies, and the newest of what is the same in all namespaces."""
    listed = [*api.all(ConfigMap, path_of("api", "v1", "namespaces", NAMESPACE, "configmaps"))]
    clusters = [one for one in listed if one.metadata.name.startswith(CLUSTER_CONFIG_MAP)]
    newest = max(
        clusters,
        key=lambda one: (one.metadata.name == CLUSTER_CONFIG_MAP, one.metadata.creation_timestamp or ""),
        default=None,
    )
    return next((one for one in listed if one.metadata.name == POLICIES_CONFIG_MAP), None), newest


def in_force(files: Mapping[str, bytes]) -> Read:
    """
    Say what would be in force by policy files alone, and what is wrong with them.

    Where a file is broken, a webhook may go on by the last good one, which is nowhere to be read.

    Raises:
        UnseenError: If there is no directory to read them from.
    """
    try:
        return _read(files)
    except OSError as error:
        reason = error.strerror or "no temporary directory can be written to"
        raise UnseenError(
            f"policies are read from files: {reason}: mount a volume at /tmp, or name one by TMPDIR"
        ) from error


def _read(files: Mapping[str, bytes]) -> Read:
    with tempfile.TemporaryDirectory() as directory:
        for name, content in files.items():
            (Path(directory) / Path(name).name).write_bytes(content)
        try:
            store = PolicyStore(Path(directory))
        except PolicyError as error:
            return None, tuple(Shown(str(one).replace(f"{directory}/", "")) for one in error.problems)
        return store.current, tuple(Shown(str(one.problem).replace(f"{directory}/", "")) for one in store.troubles)
