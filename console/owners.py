"""The objects that make pods: how the API server calls them, and whether one still wants any."""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, NamedTuple

from console.api_server import DEADLINE_SECONDS, ApiServer, UnseenError, decoded, path_of
from console.denials import Denials
from console.events import Involved
from console.explain.workload import Workload
from console.pod_templates import asks
from console.seen import Denial
from console.words import several


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
_QUOTA: Final = "exceeded quota"  # as Kubernetes says it


def owner(api: ApiServer, kind: str, namespace: str, name: str) -> Workload:
    """
    Read an object of one of KINDS or MORE_KINDS.

    Raises:
        UnseenError: If it cannot be had.
    """
    found = KINDS.get(kind) or MORE_KINDS[kind]
    return api.one(Workload, _path(found, found.version, namespace, name))


def wants_pods(api: ApiServer, on: Involved | Denial) -> bool:
    """Whether an object is there, with its uid, and is not to have 0 pods; it is where nobody may see that."""
    kind = _kind(on)
    try:
        return kind is None or _wanting(api, kind, on) is not None
    except UnseenError:
        return True


class Standing(NamedTuple):
    """Denials of controllers that still want pods."""

    denials: tuple[Denial, ...]
    unseen: UnseenError | None  # why of some it is not known whether they make pods with a share


def standing(api: ApiServer, found: Denials, threads: ThreadPoolExecutor, *, resources: Iterable[str]) -> Standing:
    """
    Leave out those whose controller is gone or wants no pods; one of those that name us stays where nobody sees that.

    Of the others, only controllers are left that make pods with a share; *resources* are those of shares.
    """
    of_shares = frozenset(resources)
    # What a quota holds back is seldom a share, and can be very many.
    others = sorted(found.others, key=lambda one: _QUOTA in one.message)
    asked = [threads.submit(wants_pods, api, one) for one in found.ours[:_MOST_ASKED]]
    looked = [threads.submit(_shares, api, one, of_shares) for one in others[: _MOST_ASKED - len(asked)]]
    waiting: list[Future[Any]] = [*asked, *looked]
    wait(waiting, timeout=_ALL_SECONDS)
    wants = [not one.done() or one.result() for one in asked] + [True] * (len(found.ours) - len(asked))
    shares = [one.result() if one.done() else UnseenError("no answer in time") for one in looked]
    most = UnseenError(f"at most {_MOST_ASKED} are looked at")
    shares += [most] * (len(others) - len(looked))
    left = [one for one, is_wanting in zip(found.ours, wants, strict=True) if is_wanting]
    left += [one for one, is_shared in zip(others, shares, strict=True) if is_shared is True]
    unseen = [one for one in shares if isinstance(one, UnseenError)]
    return Standing(tuple(sorted(left, key=lambda one: (one.namespace, one.kind, one.name))), _together(unseen))


def _together(unseen: Sequence[UnseenError]) -> UnseenError | None:
    if not unseen:
        return None
    first = unseen[0]
    of = several(len(unseen), "controller")
    return UnseenError(f"whether pods of {of} that were not created have a share: {first}", status=first.status)


def _shares(api: ApiServer, on: Denial, resources: Collection[str]) -> bool | UnseenError:
    """Whether an object wants pods, and some template in it asks for a share; of a kind that nobody knows none does."""
    kind = _kind(on)
    if kind is None:
        return False
    try:
        content = _wanting(api, kind, on)
        return content is not None and asks(decoded(dict[str, Any], content), kind.templates, resources)
    except UnseenError as error:
        return error


def _wanting(api: ApiServer, kind: Kind, on: Involved | Denial) -> bytes | None:
    """
    Read an object; None if it is gone, another one by now, or to have 0 pods.

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
    return None if is_another or found.spec.replicas == 0 else content


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
