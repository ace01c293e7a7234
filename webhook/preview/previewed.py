"""Pods of files, and what would become of each: the decision, its operations, and the pod as it is admitted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec

from policies.decision import decide
from policies.grant import Decision, Denied, Grant
from policies.pod import unbound
from policies.policy_set import PolicySet
from policies.reasons import reasons
from webhook.patch import Operation, operations
from webhook.preview.earlier import earlier_grants
from webhook.preview.workloads import Input, Workload, read_input, shown_name


class Previewed(msgspec.Struct):
    """One pod, and what became of it."""

    workload: Workload
    namespace: str
    decision: Decision
    made: list[Operation]
    patched: dict[str, Any]
    earlier: tuple[str, ...] = ()  # what it was granted before vgpusPerGpu was changed

    @property
    def pod(self) -> dict[str, Any]:
        """The pod as written."""
        return self.workload.pod

    @property
    def title(self) -> str:
        """How messages call it."""
        return shown_name(self.workload, self.namespace)


class SentExample(msgspec.Struct, frozen=True):
    """A pod as the API server sends it, and the decision on it in sentences."""

    title: str
    namespace: str
    pod: dict[str, Any]
    why: tuple[str, ...]


def preview(given: Input, policies: PolicySet, namespace: str | None) -> list[Previewed]:
    """Decide on every pod of an input; *namespace* replaces those written in it."""
    return [_preview(workload, policies, namespace) for workload in given.workloads]


def patch_pod(pod: dict[str, Any], made: list[Operation]) -> dict[str, Any]:
    """Apply operations as the API server does."""
    patched: dict[str, Any] = jsonpatch.apply_patch(pod, msgspec.to_builtins(made))
    return patched


def _preview(workload: Workload, policies: PolicySet, namespace: str | None) -> Previewed:
    place = namespace or workload.namespace or "default"
    is_of_cluster = bool((workload.pod.get("metadata") or {}).get("uid"))
    decision = decide(unbound(workload.parsed) if is_of_cluster else workload.parsed, place, policies)
    made = operations(workload.parsed, decision) if isinstance(decision, Grant) else []
    before = workload.pod if isinstance(decision, Denied) else workload.sent
    earlier = tuple(earlier_grants(workload.pod, policies.cluster))
    return Previewed(workload, place, decision, made, patch_pod(before, made), earlier)


def examples(directory: Path, policies: PolicySet) -> Iterator[SentExample]:
    """
    Read the pods of a directory's files as the API server would send them to the webhook.

    Raises:
        UnreadableError: If a file cannot be read.
    """
    for file in sorted(directory.glob("*.yaml")):
        for one in preview(read_input(file.read_text(), file.name), policies, None):
            metadata: dict[str, Any] = {"namespace": one.namespace, **one.pod.get("metadata", {})}
            if one.workload.kind != "Pod":
                metadata["generateName"] = f"{one.workload.name}-"
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": one.pod["spec"]}
            yield SentExample(one.title, one.namespace, pod, tuple(reasons(one.decision)))
