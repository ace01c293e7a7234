"""Keys that are almost ours: what their author meant, for nothing else would tell that the request is not read."""

import difflib
from collections.abc import Iterator
from typing import Any

from policies import contract
from policies.errors import quoted
from webhook.preview.places import PER_CONTAINER, is_request, texts_in

_DOMAIN = contract.SHARE_ANNOTATION_ALIAS.partition("/")[0]
_PREFIXES = (_DOMAIN, *(prefix.rstrip("/") for prefix in PER_CONTAINER))
_OTHERS = (contract.GRANT_ANNOTATION, contract.SHARED_LABEL, contract.NODE_LABEL, contract.MODE_LABEL)
_NAMES = {
    "share": contract.SHARE_ANNOTATION_ALIAS,
    "framework": contract.FRAMEWORK_ANNOTATION,
    "device": contract.DEVICE_ANNOTATION,
    "container": f"{contract.CONTAINER_ANNOTATION_PREFIX}<container>",
}
# What a share is called elsewhere, and our own resources.
_SYNONYMS = ("gpu", "gpus", "vgpu", "vgpus", "gpu-share", "gpushare", "fraction", "gpu-fraction", "size", "request")
_LIKE_A_NAME = 0.7
_LIKE_A_KEY = 0.85  # gpu-shares and gpushare are, gpu-fraction and gpu-memory are not
_LIKE_A_PREFIX = 0.8  # gpu-share.io and gpushare.dev are, gpushare.com and nvidia.com are not


def near_misses(document: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each annotation and label of an object that is almost one of ours, or is a label."""
    for field, key in texts_in(document):
        is_label = field == "labels"
        if key in _OTHERS:
            continue
        if is_request(key):
            if is_label:
                yield f"{_shown(key)} is a label here, and is read as an annotation only: write it below annotations"
            continue
        known = meant(key)
        if known is not None:
            kind = "label" if is_label else "annotation"
            yield f"the {kind} {_shown(key)} means nothing to gpu-share: did you mean the annotation {_shown(known)}?"


def meant(key: str) -> str | None:
    """Return the key of ours that *key* is almost; None if it is somebody else's."""
    plain = key.lower().replace("_", "-")
    if is_request(plain):
        return plain
    prefix, slash, name = plain.partition("/")
    if not slash:
        return contract.SHARE_ANNOTATION if _likeness(plain, contract.SHARE_ANNOTATION) >= _LIKE_A_KEY else None
    near = near_prefix(prefix)
    if near is None:
        return None
    if near != _DOMAIN:
        return f"{near}/{name}"
    if name in _SYNONYMS:
        return contract.SHARE_ANNOTATION
    close = difflib.get_close_matches(name, _NAMES, n=1, cutoff=_LIKE_A_NAME)
    return _NAMES[close[0]] if close else " or ".join(_NAMES.values())


def near_prefix(prefix: str) -> str | None:
    """Return the prefix of our keys that *prefix* is, or almost; None if it is somebody else's."""
    near = difflib.get_close_matches(prefix, _PREFIXES, n=1, cutoff=_LIKE_A_PREFIX)
    if near:
        return near[0]
    return _DOMAIN if contract.SHARE_ANNOTATION in prefix.split(".") else None  # gpu-share.com, x.gpu-share.dev


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.replace(".", "-"), other).ratio()


def _shown(key: str) -> str:
    return quoted(key, 200)[1:-1]
