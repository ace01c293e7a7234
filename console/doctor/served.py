"""What the API server serves, whatever is installed. Each function raises UnseenError for what may not be seen."""

import re
from typing import Final, TypeVar

import msgspec

from console.api_server import ApiServer, UnseenError
from console.doctor.parts import is_ready
from console.doctor.version_numbers import numbers_in
from console.dra_objects import DeviceClass, ResourceSlice
from console.objects import Pod
from console.words import Shown

T = TypeVar("T")

_NOT_FOUND: Final = 404
_DRA: Final = "/apis/resource.k8s.io"
# Kubernetes 1.33 and older have no v1. Of what is read here, attributes of devices alone are at another place there.
_WITH_SLICES: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
_GATE: Final = re.compile(rb'^kubernetes_feature_enabled\{name="(\w{1,100})"[^}]{0,100}\} ([01])$', re.MULTILINE)
# The pods of NVIDIA's GPU Operator that install its container toolkit; the tag of their image is its version.
_TOOLKIT_LABEL: Final = "app=nvidia-container-toolkit-daemonset"
_TOOLKIT_IMAGE: Final = re.compile(r".*/container-toolkit:v?([0-9]{1,6}(?:\.[0-9]{1,6}){1,3}).*", re.ASCII)


def version(api: ApiServer) -> Shown:
    """Read which Kubernetes it says that it is."""

    class _Version(msgspec.Struct, frozen=True):
        gitVersion: Shown = Shown("")  # noqa: N815 - as the API server spells it

    return api.one(_Version, "/version").gitVersion


def apis(api: ApiServer) -> frozenset[str]:
    """Read which versions of which groups it serves."""

    class _GroupVersion(msgspec.Struct, frozen=True):
        groupVersion: str = ""  # noqa: N815 - likewise

    class _Group(msgspec.Struct, frozen=True):
        versions: tuple[_GroupVersion, ...] = ()

    class _Groups(msgspec.Struct, frozen=True):
        groups: tuple[_Group, ...] = ()

    return frozenset(one.groupVersion for group in api.one(_Groups, "/apis").groups for one in group.versions)


def gates(api: ApiServer) -> dict[str, bool]:
    """Read which feature gates of the API server are enabled; those of schedulers and kubelets nobody is told here."""
    return {name.decode(): value == b"1" for name, value in _GATE.findall(api.get("/metrics"))}


def classes(api: ApiServer) -> tuple[DeviceClass, ...]:
    """List the DeviceClasses; none where DRA is not served as our sizes need it."""
    return _if_served(api, DeviceClass, "v1/deviceclasses") or ()


def slices(api: ApiServer) -> tuple[ResourceSlice, ...]:
    """List what drivers have on which node, by the newest version that is served; none where DRA is not."""
    for one in _WITH_SLICES:
        if (found := _if_served(api, ResourceSlice, f"{one}/resourceslices")) is not None:
            return found
    return ()


def toolkits(api: ApiServer) -> dict[str, str]:
    """Find which version of NVIDIA's container toolkit its GPU Operator has installed on which node."""
    found: dict[str, list[str]] = {}
    for pod in api.all(Pod, "/api/v1/pods", labelSelector=_TOOLKIT_LABEL):
        is_of_daemon_set = any(one.kind == "DaemonSet" and one.controller for one in pod.metadata.owner_references)
        if is_of_daemon_set and is_ready(pod):
            images = (_TOOLKIT_IMAGE.fullmatch(one.image) for one in pod.spec.containers)
            found.setdefault(pod.spec.node_name, []).extend(image[1] for image in images if image)
    # Whoever may create a pod writes its owner, too: by a newer version beside it, an old one is no better.
    return {node: min(versions, key=lambda one: numbers_in(one) or ()) for node, versions in found.items() if versions}


def _if_served(api: ApiServer, kind: type[T], resource: str) -> tuple[T, ...] | None:
    """List objects; None where the API server knows no such *resource*."""
    try:
        return tuple(api.all(kind, f"{_DRA}/{resource}"))
    except UnseenError as error:
        if error.status == _NOT_FOUND:
            return None
        raise
