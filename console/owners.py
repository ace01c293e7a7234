"""The objects that make pods: how the API server calls them, and whether one still wants any."""

from typing import Final, NamedTuple

from console.api_server import ApiServer, UnseenError, decoded, path_of
from console.events import Involved
from console.explain.workload import Workload, wants_none
from console.seen import Denial


class Kind(NamedTuple):
    """A kind of object that makes pods."""

    version: str
    resource: str
    templates: tuple[str, ...] = ("spec.template",)  # where its pods are, as `gpu-share preview` finds them


KINDS: Final = {
    "deployment": Kind("apps/v1", "deployments"),
    "statefulset": Kind("apps/v1", "statefulsets"),
    "daemonset": Kind("apps/v1", "daemonsets"),
    "replicaset": Kind("apps/v1", "replicasets"),
    "job": Kind("batch/v1", "jobs"),
    "cronjob": Kind("batch/v1", "cronjobs", ("spec.jobTemplate.spec.template",)),
}
# They create their pods themselves as well. Not every cluster has them, so no name without a kind is looked for there.
MORE_KINDS: Final = {
    "replicationcontroller": Kind("v1", "replicationcontrollers"),
    "raycluster": Kind("ray.io/v1", "rayclusters", ("spec.headGroupSpec.template", "spec.workerGroupSpecs.*.template")),
    "pytorchjob": Kind("kubeflow.org/v1", "pytorchjobs", ("spec.pytorchReplicaSpecs.*.template",)),
    "tfjob": Kind("kubeflow.org/v1", "tfjobs", ("spec.tfReplicaSpecs.*.template",)),
    "mpijob": Kind("kubeflow.org/v1", "mpijobs", ("spec.mpiReplicaSpecs.*.template",)),
    "xgboostjob": Kind("kubeflow.org/v1", "xgboostjobs", ("spec.xgbReplicaSpecs.*.template",)),
    "paddlejob": Kind("kubeflow.org/v1", "paddlejobs", ("spec.paddleReplicaSpecs.*.template",)),
    "jaxjob": Kind("kubeflow.org/v1", "jaxjobs", ("spec.jaxReplicaSpecs.*.template",)),
}
VOLCANO_JOB: Final = Kind("batch.volcano.sh/v1alpha1", "jobs", ("spec.tasks.*.template",))  # its kind is Job, too
_ALL: Final = (*KINDS.items(), *MORE_KINDS.items(), ("job", VOLCANO_JOB))
_COUNTING: Final = ("replicaset", "statefulset", "replicationcontroller")  # whose status says how many there are
NOT_FOUND: Final = 404


def owner(api: ApiServer, kind: Kind, namespace: str, name: str) -> Workload:
    """
    Read an object that makes pods.

    Raises:
        UnseenError: If it cannot be had.
    """
    return api.one(Workload, _path(kind, kind.version, namespace, name))


def wants_pods(api: ApiServer, on: Involved | Denial) -> bool:
    """Whether an object is there, with its uid, and misses pods; it does where nobody may see that."""
    kind = kind_of(on)
    try:
        return kind is None or wanting(api, kind, on) is not None
    except UnseenError:
        return True


def wanting(api: ApiServer, kind: Kind, on: Involved | Denial) -> bytes | None:
    """
    Read an object; None if it is gone, another one by now, suspended or over, or all its pods were created.

    Raises:
        UnseenError: If it cannot be had.
    """
    _, _, version = on.api_version.rpartition("/")
    group, slash, own = kind.version.rpartition("/")
    served = f"{group}{slash}{version if version.isalnum() else own}"  # an event may name anything
    try:
        content = api.get(_path(kind, served, on.namespace, on.name))
    except UnseenError as error:
        if error.status == NOT_FOUND:
            return None
        raise
    found = decoded(Workload, content)
    is_another = bool(on.uid and found.metadata.uid) and found.metadata.uid != on.uid
    return None if is_another or wants_none(found) or _has_all(on, found) else content


def _has_all(on: Involved | Denial, found: Workload) -> bool:
    """Whether none of its pods is missing, as far as it counts them itself."""
    wanted, made = found.spec.replicas, found.status.replicas
    if wanted is None or on.kind.lower() not in _COUNTING:
        return wanted == 0
    return (made or 0) >= wanted


def kind_of(on: Involved | Denial) -> Kind | None:
    """Find a kind by its name, and by its group where that is told."""
    group = on.api_version.rpartition("/")[0]
    for name, kind in _ALL:
        if name == on.kind.lower() and (not on.api_version or group == kind.version.rpartition("/")[0]):
            return kind
    return None


def _path(kind: Kind, version: str, namespace: str, name: str) -> str:
    at = ("apis", *version.split("/")) if "/" in version else ("api", version)
    return path_of(*at, "namespaces", namespace, kind.resource, name)
