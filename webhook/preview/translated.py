"""Pods of other systems among those to preview: `gpu-share preview --from`."""

import copy
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from policies.migration.aliyun import Aliyun, MemoryUnit
from policies.migration.foreign_pods import MIB, System, Translation, translate_pod
from policies.migration.hami import Hami
from policies.pod import Pod
from policies.quantity import whole
from webhook.preview.checked import fill_empty
from webhook.preview.left_over import left_over, objects
from webhook.preview.places import is_request
from webhook.preview.shapes import Fields, mapping
from webhook.preview.workloads import Input, Workload, shown_name

_LARGEST_MIB = 1024 * 1024 * 1024  # far above any GPU


class Origin(msgspec.Struct, frozen=True):
    """Where the pods come from."""

    title: str  # as messages call it
    system: System


def origin(name: str, gpu_memory_bytes: int | None, unit: MemoryUnit) -> Origin:
    """Make the system called *name*, `hami` or `aliyun`."""
    if name == "hami":
        return Origin("HAMi", Hami(gpu_memory_bytes))
    return Origin("Alibaba's gpushare", Aliyun(gpu_memory_bytes, unit))


def gpu_memory(text: str) -> int:
    """
    Read the memory of a GPU, `81559Mi` or `80Gi`, in bytes.

    Raises:
        ValueError: If *text* is no such quantity, or has no unit.
    """
    number = whole(text.strip().removesuffix("B"))
    if number is None or not MIB <= number <= _LARGEST_MIB * MIB:
        raise ValueError(text)
    return number


def translate(given: Input, source: Origin) -> Input:
    """Translate all pods; those that cannot be are left out, with a sentence in `unknown`."""
    workloads, undecided, looked_at = list[Workload](), list[str](), set[int]()
    resources = source.system.resources
    for _, of_object in groupby(given.workloads, lambda one: id(one.document)):
        pairs = [(one, translate_pod(one.pod, source.system)) for one in of_object]
        after, kept_of_each = _written(pairs)
        looked_at.add(id(pairs[0][0].document))
        if not any(made.undecided for _, made in pairs) and not any(kept_of_each):
            undecided += filter(None, [left_over(after, resources)])
        for (one, made), kept in zip(pairs, kept_of_each, strict=True):
            left = [*made.undecided, *kept]
            if left:
                title = shown_name(one, one.namespace or "default")
                undecided += [f"{title}: not translated from {source.title}: {sentence}" for sentence in left]
                continue
            one.translated, one.parsed = made.pod, msgspec.convert(made.pod, Pod)
            one.became = tuple(f"From {source.title}: {sentence}." for sentence in made.became)
            workloads.append(one)
    others = (one for one in objects(given.documents) if id(one) not in looked_at)
    undecided += filter(None, (left_over(one, resources) for one in others))
    return Input(given.documents, workloads, [*given.unknown, *undecided], given.used_paths)


def _written(pairs: Sequence[tuple[Workload, Translation]]) -> tuple[Fields, list[list[str]]]:
    """Write the translations of one object's pods to a copy; return it, and what of each could not be written there."""
    if all(made.pod == one.pod for one, made in pairs):
        return pairs[0][0].document, [[] for _ in pairs]
    copies = copy.deepcopy([(one.document, one.holder) for one, _ in pairs])
    left = list[list[str]]()
    for (one, made), (document, holder) in zip(pairs, copies, strict=True):
        scratch = msgspec.structs.replace(one, document=document, holder=holder)
        if made.undecided or made.pod == one.pod:
            left.append([])
            continue
        replaced = scratch.replace_pod(copy.deepcopy(made.pod))
        stay = (
            f"{field} of its pod would stay, as another place in the {one.kind} sets it too: "
            "write it where the pod stands"
            for field in replaced.kept
        )
        left.append([*replaced.unwritable, *stay])
    for (one, made), (document, holder), sentences in zip(pairs, copies, left, strict=True):
        if not sentences and not made.undecided:
            sentences.extend(_reaching(made.pod, one.shape.build(document, holder) or {}, one.kind))
    return copies[0][0], left


def _reaching(pod: Fields, again: Fields, kind: str) -> Iterator[str]:
    """Yield the requests that a pod gets *again* and does not make, such as those of another pod of its object."""
    fill_empty(again)
    own, given = (mapping(mapping(one, "metadata"), "annotations") for one in (pod, again))
    for key, text in given.items():
        if is_request(key) and own.get(key) != text:
            yield f'{key}: "{text}" of another pod in the {kind} would reach it too: have both ask for the same'
