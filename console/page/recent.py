"""What changed in the last hour, of what Kubernetes and the nodes keep: times in objects, and events."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from console.events import Event
from console.page.change import Change
from console.seen import Denial, Seen, SeenNode, SeenPod, Unseen
from console.top.summary import denied, share
from console.words import Shown, moment
from policies.node_state import Gpu

HOUR: Final = timedelta(hours=1)
MOST: Final = 300  # shown at a time
_KUBERNETES: Final = "Kubernetes"
_ABOUT: Final = {"Pod": "pod", "Node": "node"}


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """That somebody changed an object."""

    what: Shown  # kind and name of the object
    by: Shown  # the program, as the API server keeps it
    at: Shown


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for beside the look, and what of it could not be seen."""

    events: tuple[Event, ...] = ()
    edits: tuple[Edit, ...] = ()
    certificate_from: datetime | None = None  # when the certificate that the webhook serves became valid
    unseen: tuple[Unseen, ...] = ()


def recent(seen: Seen, records: Records, observed: Iterable[Change]) -> tuple[Change, ...]:
    """Put all changes of the last hour in their order, the newest first."""
    now = moment(seen.at) or datetime.now(UTC)
    found = [
        *_of_nodes(seen),
        *_of_pods(seen, now),
        *_of_events(records.events, seen),
        *_of_policies(records),
        *observed,
    ]
    timed = [(at, one) for one in found if (at := moment(one.at)) is not None and now - HOUR <= at <= now + HOUR]
    in_utc = {
        msgspec.structs.replace(one, at=at.astimezone(UTC).isoformat(timespec="seconds")): None for at, one in timed
    }
    return tuple(sorted(in_utc, key=lambda one: (one.at, one.what), reverse=True))


def _of_nodes(seen: Seen) -> Iterator[Change]:
    for node in seen.nodes:
        yield from _readiness(node)
        yield from _together(node, "became healthy", [(gpu.index, gpu.since) for gpu in node.gpus if gpu.healthy])
        daemons = [(gpu.index, gpu.mps_daemon) for gpu in node.gpus if gpu.mps_daemon]
        for state in sorted({one.state for _, one in daemons}):
            since = [(index, one.since) for index, one in daemons if one.state == state]
            yield from _together(node, f"has its MPS daemon {state}", since)
        for gpu in node.gpus:
            yield from _of_gpu(node.name, gpu)


def _readiness(node: SeenNode) -> Iterator[Change]:
    for one in node.conditions:
        if one.type == "Ready" and one.last_transition_time:
            what = f"node {node.name} became {'Ready' if one.status == 'True' else f'not Ready: {one.message}'}"
            yield Change(
                at=one.last_transition_time, what=what, source=_KUBERNETES, is_bad=one.status != "True", node=node.name
            )


def _together(node: SeenNode, what: str, since: Iterable[tuple[int, str | None]]) -> Iterator[Change]:
    """Say once what happened to several GPUs of a node at the same time."""
    by_time: dict[str, list[int]] = {}
    for index, at in since:
        by_time.setdefault(at or "", []).append(index)
    for at, indexes in by_time.items():
        which = f"GPU{'s' if len(indexes) > 1 else ''} {', '.join(map(str, sorted(indexes)))}"
        yield Change(at=at, what=f"{which} of {node.name} {what}", source=_node(node.name), node=node.name)


def _of_gpu(node: str, gpu: Gpu) -> Iterator[Change]:
    for fault in gpu.faults:
        what = f"GPU {gpu.index} of {node} became unhealthy: {fault.why}"
        yield Change(at=fault.since, what=what, source=_node(node), is_bad=True, node=node)
    if (last := gpu.application_fault) is not None:
        on_it = f"; on it: {', '.join(last.tenants)}" if last.tenants else ""
        what = f"a program on GPU {gpu.index} of {node} had a fault, XID {last.xid}{on_it}"
        yield Change(at=last.at, what=what, source=_node(node), is_bad=True, node=node)
    for one in gpu.tenants:
        what = f"{one.name} got {share(gpu, one.parts)} of GPU {gpu.index} of {node}"
        yield Change(at=one.since or "", what=what, source=_node(node), namespace=one.namespace, pod=one.pod, node=node)


def _of_pods(seen: Seen, now: datetime) -> Iterator[Change]:
    for pod in seen.pods:
        yield _of_pod(pod, pod.pod.metadata.creation_timestamp, "was created")
        yield _of_pod(pod, pod.pod.metadata.deletion_timestamp, "is to end")
        for status in (*pod.pod.status.init_container_statuses, *pod.pod.status.container_statuses):
            for ended in (status.state.terminated, status.last_state.terminated):
                if ended is not None:
                    code = "" if ended.exit_code is None else f" with exit code {ended.exit_code}"
                    what = f"container {status.name} ended{code}: {ended.reason}"
                    yield _of_pod(pod, ended.finished_at, what, is_bad=ended.exit_code not in (0, None))
    for one in seen.denials:
        yield _of_denial(one, now)


def _of_pod(pod: SeenPod, at: str | None, what: str, *, is_bad: bool = False) -> Change:
    return Change(
        at=at or "",
        what=f"{pod.namespace}/{pod.name} {what}",
        source=_KUBERNETES,
        is_bad=is_bad,
        namespace=pod.namespace,
        pod=pod.name,
        node=pod.node,
    )


def _of_denial(one: Denial, now: datetime) -> Change:
    name = f"{one.kind.lower()}/{one.name}"
    return Change(
        at=one.last or "", what=denied(one, now), source="event", is_bad=True, namespace=one.namespace, pod=name
    )


def _of_events(events: Iterable[Event], seen: Seen) -> Iterator[Change]:
    """Tell what was said of the pods and nodes that are shown."""
    known = {("Pod", one.namespace, one.name) for one in seen.pods} | {("Node", "", one.name) for one in seen.nodes}
    for event in events:
        on = event.involved_object
        namespace = on.namespace if on.kind == "Pod" else ""
        if (on.kind, namespace, on.name) not in known:
            continue
        name = f"{namespace}/{on.name}" if namespace else f"node {on.name}"
        yield Change(
            at=event.at or "",
            what=f"{name}: {event.reason}: {event.message}",
            source="event",
            is_bad=True,
            namespace=namespace,
            **{_ABOUT[on.kind]: str(on.name)},
        )


def _of_policies(records: Records) -> Iterator[Change]:
    for edit in records.edits:
        yield Change(at=edit.at, what=f"{edit.what} was changed by {edit.by}", source=f"{_KUBERNETES}: managedFields")
    if records.certificate_from is not None:
        yield Change(
            at=records.certificate_from.isoformat(),
            what="the certificate that the webhook serves became valid",
            source="its Secret",
        )


def _node(name: str) -> str:
    return f"node {name}"
