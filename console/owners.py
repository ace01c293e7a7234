"""The objects that make pods: how the API server calls them, and whether one still wants any."""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final, NamedTuple

from console.api_server import DEADLINE_SECONDS, ApiServer, UnseenError, decoded, path_of
from console.denials import Denials
from console.events import Involved
from console.explain.workload import Workload
from console.pod_templates import asks
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
_VOLCANO_JOB: Final = Kind("batch.volcano.sh/v1alpha1", "jobs", ("spec.tasks.*.template",))  # its kind is Job, too
_ALL: Final = (*KINDS.items(), *MORE_KINDS.items(), ("job", _VOLCANO_JOB))
NOT_FOUND: Final = 404
_MOST_ASKED: Final = 32  # controllers whose pods were denied
_ALL_SECONDS: Final = 3 * DEADLINE_SECONDS  # for the answers of all of them


def owner(api: ApiServer, kind: str, namespace: str, name: str) -> Workload:
    """
    Read an object of one of KINDS or MORE_KINDS.

    Raises:
        UnseenError: If it cannot be had.
    """
    found = KINDS.get(kind) or MORE_KINDS[kind]
    return api.one(Workload, _path(found, found.version, namespace, name))


def wants_pods(api: ApiServer, on: Involved | Denial, *, with_share: Collection[str] | None = None) -> bool:
    """
    Whether an object is there, with its uid, and is not to have 0 pods; it is where nobody may see that.

    *with_share* are the resources of shares, where only an object counts whose pod template asks for a share: none that
    nobody may see then, nor one of a kind whose templates are not known.
    """
    kind = _kind(on)
    if kind is None:
        return with_share is None
    _, _, version = on.api_version.rpartition("/")
    group, slash, own = kind.version.rpartition("/")
    served = f"{group}{slash}{version if version.isalnum() else own}"  # an event may name anything
    try:
        content = api.get(_path(kind, served, on.namespace, on.name))
        found = decoded(Workload, content)
        document = decoded(dict[str, Any], content) if with_share is not None else {}
    except UnseenError as error:
        return with_share is None and error.status != NOT_FOUND
    is_another = bool(on.uid and found.metadata.uid) and found.metadata.uid != on.uid
    if is_another or found.spec.replicas == 0:
        return False
    return with_share is None or asks(document, kind.templates, with_share)


def standing(
    api: ApiServer, found: Denials, threads: ThreadPoolExecutor, *, resources: Iterable[str]
) -> tuple[Denial, ...]:
    """
    Leave out those whose controller is gone or wants no pods, as far as the user may see it.

    Of those that do not name us, only controllers are left that are seen to make pods with a share; *resources* are
    those of shares. Beyond the most that are asked, those that name us stay, and the others do not.
    """
    of_shares = frozenset(resources)
    told = [*((one, None) for one in found.ours), *((one, of_shares) for one in found.others)]
    asked = [threads.submit(wants_pods, api, one, with_share=only) for one, only in told[:_MOST_ASKED]]
    wait(asked, timeout=_ALL_SECONDS)
    stands = [
        answer.result() if answer.done() else only is None for answer, (_, only) in zip(asked, told, strict=False)
    ]
    stands += [only is None for _, only in told[_MOST_ASKED:]]
    left = (one for (one, _), is_there in zip(told, stands, strict=True) if is_there)
    return tuple(sorted(left, key=lambda one: (one.namespace, one.kind, one.name)))


def _kind(on: Involved | Denial) -> Kind | None:
    """Find a kind by its name, and by its group where that is told."""
    group = on.api_version.rpartition("/")[0]
    for name, kind in _ALL:
        if name == on.kind.lower() and (not on.api_version or group == kind.version.rpartition("/")[0]):
            return kind
    return None


def _path(kind: Kind, version: str, namespace: str, name: str) -> str:
    at = ("apis", *version.split("/")) if "/" in version else ("api", version)
    return path_of(*at, "namespaces", namespace, kind.resource, name)
