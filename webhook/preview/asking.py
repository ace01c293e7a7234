"""What asks for a share in an object in which no pod is found: annotations, and resources of ours anywhere."""

from collections.abc import Callable, Iterator
from typing import Any

from policies.quantity import whole
from webhook.preview.places import Step, requests_in
from webhook.preview.shapes import Fields

IsOurs = Callable[[str], bool]

_NOT_WRITTEN = "status"  # by whoever writes the object
_NO_RESOURCES = ("annotations", "labels", "managedFields")
_NAMES = ("name", "resource", "resourceName")  # of a resource beside its amount, as in a SparkApplication
# Kinds that name resources, patterns of containers or annotations of their pods, and make no pod of them.
_NO_PODS = {
    "": {"ConfigMap", "LimitRange", "Node", "ResourceQuota", "Secret"},
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "autoscaling.k8s.io": {"VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"},
    "capsule.clastix.io": {"Tenant"},
    "config.kueue.x-k8s.io": {"Configuration"},
    "descheduler": {"DeschedulerPolicy"},
    "karpenter.sh": {"NodeClaim", "NodeOverlay", "NodePool"},
    "kubescheduler.config.k8s.io": {"KubeSchedulerConfiguration"},
    "kueue.x-k8s.io": {"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor"},
    "kyverno.io": {"ClusterPolicy", "Policy"},
    "metrics.k8s.io": {"NodeMetrics", "PodMetrics"},
    "mutations.gatekeeper.sh": {"Assign", "AssignImage", "AssignMetadata", "ModifySet"},
    "nfd.k8s-sigs.io": {"NodeFeature", "NodeFeatureRule"},
    "policy.karmada.io": {"FederatedResourceQuota"},
    "resource.k8s.io": {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
    "scheduling.run.ai": {"PodGroup", "Queue"},
    "scheduling.sigs.k8s.io": {"ElasticQuota", "PodGroup"},
    "scheduling.volcano.sh": {"PodGroup", "Queue"},
    "scheduling.x-k8s.io": {"ElasticQuota", "PodGroup"},
    "topology.node.k8s.io": {"NodeResourceTopology"},
}


def makes_no_pods(document: Fields) -> bool:
    """Whether an object is of a kind of which no pod is ever made."""
    group = str(document.get("apiVersion") or "").rpartition("/")[0]
    return document.get("kind") in _NO_PODS.get(group, ())


def asking(document: Fields, is_ours: IsOurs) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield where in an object something asks for a share, and what: the mapping's place, and its key or resource."""
    if makes_no_pods(document):
        return
    yield from ((steps, key) for steps, _, key in requests_in(document))
    yield from _resources({key: value for key, value in document.items() if key != _NOT_WRITTEN}, is_ours, ())


def _resources(value: Any, is_ours: IsOurs, steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], str]]:
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _resources(inner, is_ours, (*steps, index))
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in _NO_RESOURCES:
            continue
        if is_ours(key) and whole(str(inner)) != 0:
            yield steps, key
        elif key in _NAMES and isinstance(inner, str) and is_ours(inner):
            yield (*steps, key), inner
        else:
            yield from _resources(inner, is_ours, (*steps, key))
