"""By what a pod asks for a share, in the words of its owner: annotations, and limits that no grant has added."""

from collections.abc import Iterator

from console.api_server import UnseenError, decoded
from console.explain.quotas import names_shares
from console.objects import Pod
from console.pod_templates import Resources
from console.words import Shown
from policies import pod as rules
from policies.carried_grant import asking, carried_grant
from policies.contract import DRIVER, GRANT_ANNOTATION, SHARE_ANNOTATION


def asked(pod: Pod, content: bytes, by: Resources) -> tuple[str, ...]:
    """
    Say by what a pod asks for a share, and what it says of frameworks.

    *content* is the pod as it was read, and *by* how shares are called.
    """
    return (*_annotations(pod), *_limits(pod, _added(content), by))


def _annotations(pod: Pod) -> Iterator[str]:
    for key, value in sorted(pod.metadata.annotations.items()):
        if (key == SHARE_ANNOTATION or DRIVER in key) and key != GRANT_ANNOTATION:
            yield Shown(f"annotation {key}: {value}")


def _limits(pod: Pod, added: set[tuple[str, str]], by: Resources) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for resource, amount in sorted(container.resources.limits.items()):
            if names_shares(resource, by) and (container.name, resource) not in added:
                yield Shown(f"limit of {container.name}: {amount} x {resource}")


def _added(content: bytes) -> set[tuple[str, str]]:
    """Find the limits that came with the grant, by container and resource."""
    try:
        pod = decoded(rules.Pod, content)
    except UnseenError:
        return set()
    containers = rules.slots(pod)
    grant = carried_grant(pod, containers)
    if grant is None:
        return set()
    by_annotation, _ = asking(pod, containers, grant)
    return {(name, grant.limit(grant.containers[name])[0]) for name in by_annotation}
