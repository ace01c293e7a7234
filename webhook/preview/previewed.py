"""Pods of files, and what would become of each: the decision, its operations, and the pod as it is admitted."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec

from policies.as_written import as_written
from policies.contract import MIRROR_ANNOTATION
from policies.decision import decide
from policies.grant import Decision, Denied, Grant, Untouched
from policies.pod import Pod, unbound
from policies.policy_set import PolicySet
from policies.reasons import reasons
from webhook.patch import Operation, operations
from webhook.preview.api_server import Checked, checked
from webhook.preview.earlier import earlier_grants
from webhook.preview.near_resources import near_resources
from webhook.preview.parameters import words
from webhook.preview.pod_security import PodSecurity, restricted_when_stored, said_by_namespaces, said_of_both
from webhook.preview.ray import without_gpus
from webhook.preview.shapes import Values
from webhook.preview.unfilled import judged
from webhook.preview.workloads import Input, Workload, read_input, shown_name


class Previewed(msgspec.Struct):
    """One pod, and what became of it."""

    workload: Workload
    namespace: str
    decision: Decision  # the webhook's
    made: list[Operation]
    patched: dict[str, Any]
    earlier: tuple[str, ...] = ()  # what it was granted before vgpusPerGpu was changed
    oversights: tuple[str, ...] = ()  # in the object and in its resources, as sentences
    denied_after: str = ""  # by the API server's own check, with this message, though the webhook admits it
    unclear: str = ""  # why nothing is said of it, as a sentence
    unwritable: str = ""  # why it is not written into its object, as a sentence
    restricted: Decision | None = None  # where Pod Security forbids hostIPC, if it is not known whether it does

    @property
    def otherwise(self) -> str:
        """What else holds where Pod Security forbids hostIPC, as a sentence; empty if nothing does, or it is known."""
        return said_of_both(self.decision, self.restricted, self.namespace) if self.restricted else ""

    @property
    def is_denied(self) -> bool:
        """Whether there will be no such pod."""
        return bool(self.denied_after) or isinstance(self.decision, Denied)

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


def preview(
    given: Input,
    policies: PolicySet,
    namespace: str | None,
    *,
    unwritten: str = "default",
    security: PodSecurity = PodSecurity(),  # noqa: B008 - a value
) -> list[Previewed]:
    """
    Decide on every pod of an input; *namespace* replaces those written in it, *unwritten* is where none is.

    What *security* does not know of a namespace, a Namespace in the input may say.
    """
    security = msgspec.structs.replace(security, written=said_by_namespaces(given.documents))
    values = dict[int, Values | None]()  # by document
    made = list[Previewed]()
    for one in given.workloads:
        place, judge = namespace or one.namespace or unwritten, _preview
        if next(words(one.sent), None) is not None:
            of_document = _kept(values, one)
            judge = partial(_with_words, of_document(one.holder)) if of_document is not None else _preview
        made.append(judge(one, policies, place, security))
    return made


def _kept(values: dict[int, Values | None], of: Workload) -> Values | None:
    """Read what an object says of words, once for all its pods."""
    if id(of.document) not in values:
        values[id(of.document)] = of.shape.values(of.document)
    return values[id(of.document)]


def _with_words(
    values: Mapping[str, str], workload: Workload, policies: PolicySet, place: str, security: PodSecurity
) -> Previewed:
    """Decide on a pod with words that its controller replaces, some of them by *values*."""
    restricted = bool(security.restricts(place))

    def decided(pod: Pod) -> tuple[Decision, str]:
        decision = decide(pod, place, policies, restricted=restricted)
        return decision, checked(decision, pod, place, policies, security).denied

    unfilled = judged(workload.sent, values, decided)
    if said := unfilled.unclear:
        return Previewed(workload, place, Untouched(said), [], workload.sent, unclear=said, unwritable=said)
    parsed = msgspec.convert(unfilled.pod, Pod)
    found = _preview(msgspec.structs.replace(workload, parsed=parsed), policies, place, security)
    if isinstance(found.decision, Grant) or unfilled.unwritable:
        found.oversights += unfilled.said
    if found.made:
        found.made = unfilled.restored(found.made)
        found.patched, found.unwritable = patch_pod(workload.sent, found.made), unfilled.unwritable
    return found


def patch_pod(pod: dict[str, Any], made: list[Operation]) -> dict[str, Any]:
    """Apply operations as the API server does."""
    patched: dict[str, Any] = jsonpatch.apply_patch(pod, msgspec.to_builtins(made))
    return patched


def _preview(workload: Workload, policies: PolicySet, place: str, security: PodSecurity) -> Previewed:
    sent, parsed = workload.sent, workload.parsed
    is_of_cluster = bool((workload.pod.get("metadata") or {}).get("uid"))
    restricted = security.restricts(place)
    if is_of_cluster:
        restricted = restricted_when_stored(parsed) if restricted is None else restricted
        sent = as_written(sent, parsed, place, policies)
        parsed = unbound(msgspec.convert(sent, Pod))
    decision = decide(parsed, place, policies, restricted=bool(restricted))
    otherwise = None
    if restricted is None and policies.of(place).policy.mps.attach == "auto":
        otherwise = decide(parsed, place, policies, restricted=True)
        otherwise = None if otherwise == decision else otherwise
    is_kubelets = is_of_cluster and MIRROR_ANNOTATION in (parsed.metadata.annotations or ())
    by_api_server = Checked() if is_kubelets else checked(decision, parsed, place, policies, security)
    denied_after = by_api_server.denied
    oversights = (*by_api_server.warnings, *workload.oversights, *near_resources(parsed, policies.cluster))
    made = operations(parsed, decision) if isinstance(decision, Grant) and not denied_after else []
    before = workload.pod if denied_after or isinstance(decision, Denied) else sent
    patched = patch_pod(before, made)
    if sent is not workload.sent:
        patched = _in_order_of(workload.pod, patched)
        made = made if patched != workload.pod else []
    earlier = tuple(earlier_grants(workload.pod, policies.cluster)) if workload.kind == "Pod" else ()
    if isinstance(decision, Grant):
        shared = [one.slot.name for one in decision.containers]
        oversights += tuple(without_gpus(workload.document, workload.holder, workload.sent, shared))
    return Previewed(workload, place, decision, made, patched, earlier, oversights, denied_after, restricted=otherwise)


def _in_order_of(before: Any, after: Any) -> Any:
    """Write what is equal in the same order, so that a difference shows what differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*(key for key in before if key in after), *(key for key in after if key not in before)]
        return {key: _in_order_of(before.get(key), after[key]) for key in keys}
    if isinstance(before, list) and isinstance(after, list):
        return [_in_order_of(*pair) for pair in zip(before, after, strict=False)] + after[len(before) :]
    return after


def examples(directory: Path, policies: PolicySet) -> Iterator[SentExample]:
    """
    Read the pods of a directory's files as the API server would send them to the webhook.

    Raises:
        UnreadableError: If a file cannot be read.
    """
    for file in sorted(directory.glob("*.yaml")):
        for one in preview(read_input(file.read_text(encoding="utf-8"), file.name), policies, None):
            metadata: dict[str, Any] = {"namespace": one.namespace, **one.pod.get("metadata", {})}
            if one.workload.kind != "Pod":
                metadata["generateName"] = f"{one.workload.name}-"
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": one.pod["spec"]}
            yield SentExample(one.title, one.namespace, pod, tuple(reasons(one.decision)))
