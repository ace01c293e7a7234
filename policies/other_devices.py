"""Other ways to a GPU than a share: annotations for container runtimes, other plugins' resources, claims."""

import re
from functools import lru_cache
from typing import Final

from policies.contract import (
    DEVICE_ANNOTATIONS,
    OTHER_GPU_RESOURCES,
    OTHER_SHARE_ANNOTATIONS,
    TUNING_ANNOTATIONS,
)
from policies.denial import Findings
from policies.errors import quoted
from policies.pod import Pod

_injects_devices = re.compile(DEVICE_ANNOTATIONS).match
_tunes = re.compile(TUNING_ANNOTATIONS).match
_names_gpus = re.compile(OTHER_GPU_RESOURCES).search
_LONGEST_KEPT: Final = 317  # characters, which is the longest key that the API server admits


def check_other_devices(pod: Pod, found: Findings) -> None:
    """Deny a pod that would get devices beside its share, and another way than by a container's resources."""
    for key in pod.metadata.annotations or ():
        if injects_devices(key):
            what = f"The pod has the annotation {quoted(key, 80)}, by which a container runtime can inject devices"
            found.deny("ReservedAnnotation", what, "Remove the annotation: the share brings its GPU")
        elif key in OTHER_SHARE_ANNOTATIONS:
            what = f"The pod asks for a part of a GPU by {key}, which is for another scheduler, beside its share"
            found.deny("ConflictingRequest", what, "Remove one of the two")
    if pod.spec.resource_claims:
        what = "The pod has resourceClaims, and admission cannot see whether they are for GPUs, beside its share"
        found.deny("ConflictingRequest", what, "Remove one of the two")


def injects_devices(key: str) -> bool:
    """Whether a container runtime, or a plugin of one, can inject devices for the annotation *key*."""
    return _known_to_inject(key) if len(key) <= _LONGEST_KEPT else _injects(key)


def _injects(key: str) -> bool:
    return _injects_devices(key) is not None and _tunes(key) is None


_known_to_inject = lru_cache(1024)(_injects)  # the same few keys are on the pods of a cluster


def is_other_gpu(resource: str) -> bool:
    """Whether *resource*, which is none of ours, is a GPU, or may be one."""
    return _names_gpus(resource) is not None
