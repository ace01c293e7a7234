"""Resources that are almost ours: no node has them, so the pod stays Pending, and nothing else would tell why."""

import difflib
from collections.abc import Iterator
from typing import Final

from policies.cluster import Cluster
from policies.contract import DEFAULT_RESOURCE_NAMES, SHARE_ANNOTATION, WHOLE_GPU_RESOURCE_PREFIXES
from policies.device_names import GPU_DEVICE, of_model, of_profile, resource_of
from policies.errors import quoted
from policies.kind import device_resources
from policies.mig import profile_of
from policies.pod import Pod, slots
from policies.quantity import whole
from webhook.preview.near_misses import meant, near_prefix

_LIKE_A_NAME: Final = 0.7
_LIKE_A_NAME_OF_OTHERS: Final = 0.88  # vgpus is like vgpu, gpu is not
# What a share is called in place of a resource.
_SHARES: Final = ("share", "shares", "gpu-share", "gpushare", "fraction", "gpu-fraction")
_LONGEST: Final = 317  # characters, which is the longest name that the API server admits


def near_resources(pod: Pod, cluster: Cluster) -> Iterator[str]:
    """Yield a sentence for each resource in limits and requests of a container that is almost one of ours."""
    for slot in slots(pod):
        resources = device_resources(slot)
        amounts = ((resources.limits or {}) | (resources.requests or {})) if resources else {}
        for name, quantity in amounts.items():
            known = meant_resource(name, cluster) if whole(quantity) != 0 else None
            if known is not None:
                shown, named = quoted(name, 200)[1:-1], quoted(slot.name, 30)
                yield f"the resource {shown} of {named} means nothing to gpu-share: did you mean {known}?"


def meant_resource(name: str, cluster: Cluster) -> str | None:
    """Return the resource of ours that *name* is almost, or the annotation; None if it is somebody else's, or ours."""
    if len(name) > _LONGEST or _exists(name, cluster):
        return None
    plain = name.lower().replace("_", "-")
    if plain != name and _exists(plain, cluster):
        return plain
    prefix, slash, ending = plain.partition("/")
    if not slash:
        return f"the annotation {SHARE_ANNOTATION}" if meant(name) == SHARE_ANNOTATION else None
    if near_prefix(prefix):
        return _of_our_domain(ending, cluster)
    return _of_the_domain(prefix, ending, cluster)


def _exists(name: str, cluster: Cluster) -> bool:
    """Whether it is a resource of ours, or of a maker's plugin that `_cluster.yaml` names."""
    return cluster.is_ours(name) or any(one.resource == name for table in cluster.partitions.values() for one in table)


def _of_our_domain(ending: str, cluster: Cluster) -> str:
    """Say what was meant by a name of our own domain, where nobody else has any."""
    if ending in _SHARES:
        return f"the annotation {SHARE_ANNOTATION}"
    names = {resource.partition("/")[2]: resource for resource in cluster.resource_names.values()}
    for strategy, resource in DEFAULT_RESOURCE_NAMES.items():  # which are others by resourceNames
        names.setdefault(resource.partition("/")[2], cluster.resource_names[strategy])
    base, device = _split(ending, cluster)
    close = difflib.get_close_matches(base, names, n=1, cutoff=_LIKE_A_NAME)
    if close:
        return resource_of(names[close[0]], device)
    return f"{' or '.join(cluster.resource_names.values())}, or the annotation {SHARE_ANNOTATION}"


def _split(ending: str, cluster: Cluster) -> tuple[str, str]:
    """Take a device off the end of a name, with or without the word that our resources have before it."""
    for at, character in enumerate(ending):
        if character == "-":
            text = ending[at + 1 :]
            model, profile = of_model(text.removeprefix("model-")), profile_of(text.removeprefix("mig-"))
            if model in cluster.models or profile is not None:
                return ending[:at], model if profile is None else of_profile(profile)
    return ending, GPU_DEVICE


def _of_the_domain(prefix: str, ending: str, cluster: Cluster) -> str | None:
    """Say what was meant by a name of the domain of one of `resourceNames`, which may be somebody else's as well."""
    if f"{prefix}/{ending}".startswith(WHOLE_GPU_RESOURCE_PREFIXES):
        return None
    names = {one.partition("/")[2]: one for one in cluster.resource_names.values() if one.startswith(f"{prefix}/")}
    base, device = _split(ending, cluster)
    close = difflib.get_close_matches(base, names, n=1, cutoff=_LIKE_A_NAME_OF_OTHERS)
    return resource_of(names[close[0]], device) if close else None
