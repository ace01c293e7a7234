"""The objects that make pods: how the API server calls them, and whether one still wants any."""

from typing import Final

from console.api_server import ApiServer, UnseenError, path_of
from console.explain.workload import Workload

KINDS: Final = {
    "deployment": ("apps/v1", "deployments"),
    "statefulset": ("apps/v1", "statefulsets"),
    "daemonset": ("apps/v1", "daemonsets"),
    "replicaset": ("apps/v1", "replicasets"),
    "job": ("batch/v1", "jobs"),
    "cronjob": ("batch/v1", "cronjobs"),
}
NOT_FOUND: Final = 404


def owner(api: ApiServer, kind: str, namespace: str, name: str) -> Workload:
    """
    Read an object of one of KINDS.

    Raises:
        UnseenError: If it cannot be had.
    """
    version, resource = KINDS[kind]
    return api.one(Workload, path_of("apis", *version.split("/"), "namespaces", namespace, resource, name))


def wants_pods(api: ApiServer, kind: str, namespace: str, name: str, *, uid: str) -> bool:
    """Whether an object is there, with this *uid*, and is not to have 0 pods; it is where nobody may see that."""
    if kind.lower() not in KINDS:
        return True
    try:
        found = owner(api, kind.lower(), namespace, name)
    except UnseenError as error:
        return error.status != NOT_FOUND
    is_another = bool(uid and found.metadata.uid) and found.metadata.uid != uid
    return not is_another and found.spec.replicas != 0
