"""Pods without a share that try to get to a GPU, in a cluster that is locked down."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import variable
from tests.bypass.corpus_devices import (
    ANNOTATIONS,
    CLAIM,
    HARMLESS_ANNOTATIONS,
    HARMLESS_RESOURCES,
    RESOURCES,
    annotated,
)
from tests.policies.pods import container, limited, pod

VARIABLE, ANNOTATION, CLASS = "sets NVIDIA_VISIBLE_DEVICES", "has an annotation by which", "have a RuntimeClass"
RESOURCE, PATH, PRIVILEGED = "asks for GPUs of another device plugin", "mounts the devices", "a privileged container"
PATHS = (
    "/",
    "/dev",
    "//dev/",
    "/./dev/nvidia0",
    "/dev/null",  # a request for GPUs, mounted below /var/run/nvidia-container-devices
    "/dev/dri",
    "/dev/shm",
    "/tmp",
    "/tmp/nvidia-mps",
    "/tmp//nvidia-mps/GPU-0",
    "/proc",
    "/proc/1/root/dev",
    "/run",
    "/var/run/",
    "/run/nvidia/driver",
    "/run/nvidia-persistenced",
    "/run/gpu-share",
    "/var/lib/gpu-share",
    "/var/./lib//gpu-share/last-cluster",
    "/var/lib",
    "/var/run/cdi",
    "/etc/cdi",
    "/etc",
    "/var",
)
HARMLESS_PATHS = (
    "/var/lib/docker/containers",
    "/data",
    "/tmp/cache",
    "/run/user",
    "/var/log",
    "/etc/ssl/certs",
    "/device",
    "/nvidia",
)


def to_a_gpu() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give the name of each pod, what is said of it, and the pod."""
    for value in ("all", "0", "GPU-1", "none", "", "VOID", "void,all", "$(A)"):
        yield f"{value!r} as visible devices", VARIABLE, pod(None, container(env=[variable(VISIBLE, value)]))
    referred = variable(VISIBLE, None, valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}})
    yield "visible devices by reference", VARIABLE, pod(None, container(env=[referred]))
    init = container("i", env=[variable(VISIBLE)])
    yield "visible devices of an init container", VARIABLE, pod(None, initContainers=[init])
    twice = container(env=[variable(VISIBLE, "void"), variable(VISIBLE)])
    yield "visible devices given twice", VARIABLE, pod(None, twice)
    for key in (*ANNOTATIONS, "gpu-fraction", "gpu-memory"):
        yield f"the annotation {key}", ANNOTATION, annotated(pod(None), key)
    for name in ("nvidia", "nvidia-cdi", "kata-qemu-nvidia-gpu"):
        yield f"the RuntimeClass {name}", CLASS, pod(None, runtimeClassName=name)
    forged = pod(None, annotations={"gpu-share.dev/grant": "{}"}, runtimeClassName="nvidia")
    yield "a RuntimeClass with a grant and no share", CLASS, forged
    for name in ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu", *RESOURCES):
        yield f"{name} by limit", RESOURCE, pod(None, limited("main", "1", name))
    yield "a GPU in an init container", RESOURCE, pod(None, initContainers=[limited("i", "1", "nvidia.com/gpu")])
    for path in PATHS:
        volumes = [{"name": "host", "hostPath": {"path": path}}]
        yield f"the path {path} of the node", PATH, pod(None, volumes=volumes)
    yield "a privileged container", PRIVILEGED, pod(None, container(securityContext={"privileged": True}))
    privileged = container("i", securityContext={"privileged": True})
    yield "a privileged init container", PRIVILEGED, pod(None, initContainers=[privileged])


def without_a_gpu() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give pods that are everybody's, by name."""
    yield "a plain pod", pod(None)
    yield "a container that hides GPUs", pod(None, container(env=[variable(VISIBLE, "void"), variable("A", "all")]))
    yield "an unprivileged container", pod(None, container(securityContext={"privileged": False}))
    yield "another RuntimeClass", pod(None, runtimeClassName="runc")
    yield (
        "a claim of devices, by name",
        pod(None, container(resources={"claims": [{"name": "gpu"}]}), resourceClaims=CLAIM),
    )
    for key in HARMLESS_ANNOTATIONS:
        yield f"the annotation {key}", annotated(pod(None), key, "runtime/default")
    for name in HARMLESS_RESOURCES:
        asked = {"limits": {name: "1Gi", "cpu": 1} if name.startswith("huge") else {name: "1"}}
        yield f"{name} by limit", pod(None, container(resources=asked))
    for path in HARMLESS_PATHS:
        yield f"the path {path} of the node", pod(None, volumes=[{"name": "host", "hostPath": {"path": path}}])


VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def claim(*classes: str, alternatives: tuple[str, ...] = ()) -> dict[str, Any]:
    """A claim of one device of each class, and of one that several classes have."""
    requests: list[dict[str, Any]] = [
        {"name": f"r{number}", "exactly": {"deviceClassName": name}} for number, name in enumerate(classes)
    ]
    if alternatives:
        first = [{"name": f"a{number}", "deviceClassName": name} for number, name in enumerate(alternatives)]
        requests.append({"name": "any", "firstAvailable": first})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "example"},
        "spec": {"devices": {"requests": requests}},
    }


def template(of: dict[str, Any]) -> dict[str, Any]:
    """A template of a claim."""
    return of | {"kind": "ResourceClaimTemplate", "spec": {"spec": of["spec"]}}


def in_version(version: str, of: dict[str, Any]) -> dict[str, Any]:
    """A claim as clients of another version write it."""
    requests = of["spec"]["devices"]["requests"]
    if version == "v1beta1":  # which has no `exactly` around what is in it
        requests = [{key: one[key] for key in one if key != "exactly"} | one.get("exactly", {}) for one in requests]
    return of | {"apiVersion": f"resource.k8s.io/{version}", "spec": {"devices": {"requests": requests}}}


CLAIMS_TO_GPUS = {
    "a GPU": claim("gpu.nvidia.com"),
    "a MIG device": claim("mig.nvidia.com"),
    "a GPU of AMD": claim("gpu.amd.com"),
    "a second request": claim("dra.net", "gpu.nvidia.com"),
    "an alternative": claim("dra.net", alternatives=("tpu.google.com", "shared-gpus")),
    "alternatives alone": claim(alternatives=("gpu.intel.com",)),
}
OTHER_CLAIMS = {"a network card": claim("dra.net"), "a share": claim("share-200m.gpu-share.dev")}
