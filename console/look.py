"""Look at a cluster once: its nodes and pods, and beside each other what every node says of itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from time import monotonic
from typing import Final, TypeVar

import msgspec

from console.api_server import MANY_SECONDS, TOO_MANY_REQUESTS, ApiServer, UnseenError, path_of
from console.denials import denials
from console.events import NOT_CREATED_REASONS, Event
from console.grant import Grant
from console.objects import Node, Pod
from console.policy_sources import policy_sources
from console.seen import (
    ALL_NODES,
    COMPONENT_LABEL,
    DENIED_PODS,
    ON_NODES,
    OUR_PODS,
    SHARED_PODS,
    STATES,
    Newer,
    Seen,
    SeenPod,
    Unasked,
    Unseen,
)
from console.seen_nodes import other_nodes, seen_nodes
from console.standing import standing
from console.threads import asking
from console.words import Shown, as_shown
from policies.contract import GRANT_ANNOTATION, NAMESPACE, SHARED_LABEL
from policies.node_state import LARGEST_BYTES, NewerStateError, NodeState, NodeStateError, read
from program.structs import decoder

T = TypeVar("T")

STATE_PORT: Final = 9407  # where a pod does not name its port `state`
# Which the selectors of DaemonSets and Deployments have too: a kustomization can write another label over.
OURS: Final = "app.kubernetes.io/name=gpu-share"
PARTS_RIGHT: Final = f"list pods in namespace {NAMESPACE}"
_FORBIDDEN: Final = (401, 403)


@dataclass(frozen=True, slots=True)
class Looks:
    """What could not be seen, while several things are looked at."""

    unseen: list[Unseen] = field(default_factory=list)

    def at(self, what: str, right: str, read_it: Callable[[], T], otherwise: T) -> T:
        """Look at one thing; what cannot be seen is written down."""
        try:
            return read_it()
        except UnseenError as error:
            self.unseen.append(unseen(what, error, right))
            return otherwise

    def hidden(self, what: str) -> Unseen | None:
        """Give the reason why nothing is known of *what*, such as OUR_PODS; None if it was seen."""
        return next((one for one in self.unseen if one.what.startswith(what)), None)


def unseen(what: str, error: UnseenError, right: str) -> Unseen:
    """Say what cannot be seen, and by which right it could if that is what is missing."""
    kind = Unasked if error.status == TOO_MANY_REQUESTS else Unseen
    return kind(what=what, why=str(error), right=right if error.status in _FORBIDDEN else "")


def look(api: ApiServer, *, namespace: str = "") -> Seen:
    """Look at the cluster as far as the user's rights go; *namespace* is whose pods are looked for, all without one."""
    looks = Looks()
    place = ("namespaces", namespace) if namespace else ()
    of = f" in namespace {namespace}" if namespace else ""
    began_seconds = monotonic()
    with asking(api) as threads:
        ask = partial(_ask, looks, threads)
        nodes, parts = _ask_nodes(api, looks, threads)
        pods = ask(
            f"{SHARED_PODS}{of}",
            f"list pods{of}",
            lambda: api.all(Pod, path_of("api", "v1", *place, "pods"), labelSelector=f"{SHARED_LABEL}=true"),
        )
        at_events = path_of("api", "v1", *place, "events")
        events = [
            ask(f"{DENIED_PODS}{of}", f"list events{of}", partial(api.all, Event, at_events, fieldSelector=selector))
            for selector in (f"reason={reason}" for reason in NOT_CREATED_REASONS)
        ]
        states = _states(api, parts.result(), threads)
        events_seen, pods_seen = [*chain.from_iterable(one.result() for one in events)], pods.result()
        now = api.clock.since(began_seconds)
        told = denials(events_seen, pods_seen, now.at)
        sources = policy_sources(parts.result(), looks.hidden(OUR_PODS))
        denied = standing(api, told, threads, resources=_resources(states.values()), sources=sources)
    if denied.unseen is not None:
        looks.unseen.append(unseen(f"{DENIED_PODS}{of}", denied.unseen, f"get their controllers{of}"))
    return Seen(
        context=api.context or api.address,
        at=now.at.isoformat(timespec="seconds"),
        ahead_seconds=now.ahead_seconds,
        namespace=namespace,
        nodes=seen_nodes(nodes.result(), states, hidden=looks.hidden(OUR_PODS)),
        others=other_nodes(nodes.result(), states),
        listed=frozenset(str(one.metadata.name) for one in nodes.result()),
        node_info={str(one.metadata.name): one.status.node_info for one in nodes.result()},
        pods=tuple(sorted(map(seen_pod, pods.result()), key=lambda one: (one.namespace, one.name))),
        denials=denied.denials,
        parts=tuple(parts.result()),
        unseen=tuple(dict.fromkeys(looks.unseen)),
    )


def look_at_nodes(api: ApiServer) -> Seen:
    """Look at the nodes alone, and at what they say: what a pod is explained by that is known already."""
    looks, began_seconds = Looks(), monotonic()
    with asking(api) as threads:
        nodes, parts = _ask_nodes(api, looks, threads)
        states = _states(api, parts.result(), threads)
    now = api.clock.since(began_seconds)
    return Seen(
        context=api.context or api.address,
        at=now.at.isoformat(timespec="seconds"),
        ahead_seconds=now.ahead_seconds,
        nodes=seen_nodes(nodes.result(), states, hidden=looks.hidden(OUR_PODS)),
        others=other_nodes(nodes.result(), states),
        listed=frozenset(str(one.metadata.name) for one in nodes.result()),
        parts=tuple(parts.result()),
        unseen=tuple(dict.fromkeys(looks.unseen)),
    )


def our_pods(api: ApiServer) -> Iterator[Pod]:
    """
    Read the pods of gpu-share itself.

    Raises:
        UnseenError: If they cannot be had.
    """
    return api.all(Pod, path_of("api", "v1", "namespaces", NAMESPACE, "pods"), labelSelector=OURS)


def seen_pod(pod: Pod) -> SeenPod:
    """Read what the containers of a pod were granted; by hand anything can stand there."""
    try:
        text = pod.metadata.annotations.get(GRANT_ANNOTATION, "")
        grant = decoder(Grant, as_shown).decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError):
        return SeenPod(pod=pod, grant=None)
    named = {one.name for one in (*pod.spec.init_containers, *pod.spec.containers)}
    granted = {name: one for name, one in grant.containers.items() if name in named}
    return SeenPod(pod=pod, grant=msgspec.structs.replace(grant, containers=granted))


def state_path(part: Pod) -> str:
    """Write the path to the state of a node through the API server's proxy to one of its parts."""
    ports = {port.name: port.container_port for container in part.spec.containers for port in container.ports}
    pod = f"{part.metadata.name}:{ports.get('state', STATE_PORT)}"
    return path_of("api", "v1", "namespaces", NAMESPACE, "pods", pod, "proxy", "state")


def _ask(
    looks: Looks, threads: ThreadPoolExecutor, what: str, right: str, read_it: Callable[[], Iterable[T]]
) -> "Future[Sequence[T]]":
    return threads.submit(lambda: looks.at(what, right, lambda: [*read_it()], []))


def _ask_nodes(
    api: ApiServer, looks: Looks, threads: ThreadPoolExecutor
) -> tuple["Future[Sequence[Node]]", "Future[Sequence[Pod]]"]:
    """Ask for the nodes, and for the parts of gpu-share that can say more of them."""
    nodes = _ask(looks, threads, ALL_NODES, "list nodes", lambda: api.all(Node, "/api/v1/nodes"))
    parts = _ask(
        looks,
        threads,
        f"{OUR_PODS}, and so {STATES}",
        PARTS_RIGHT,
        lambda: our_pods(api),
    )
    return nodes, parts


def _states(api: ApiServer, parts: Iterable[Pod], threads: ThreadPoolExecutor) -> dict[str, NodeState | Unseen]:
    """Ask each node, all at the same time; the parts of one node one after the other, until one answers."""
    by_node: dict[str, list[Pod]] = {}
    for part in sorted(parts, key=lambda one: _rank(one.metadata.labels.get(COMPONENT_LABEL, ""))):
        if part.metadata.labels.get(COMPONENT_LABEL) in ON_NODES and part.spec.node_name:
            by_node.setdefault(part.spec.node_name, []).append(part)
    api.sign_in()  # that others are slow would not be why
    asked = {node: threads.submit(_state, api, on) for node, on in by_node.items()}
    wait(asked.values(), timeout=MANY_SECONDS)
    return {node: _answered(answer, node) for node, answer in asked.items()}


def _answered(answer: "Future[NodeState | Unseen]", node: str) -> NodeState | Unseen:
    if answer.done() and not answer.cancelled():
        return answer.result()
    kind = Unasked if answer.cancel() else Unseen
    return kind(what=f"node {node}", why=f"no answer within {MANY_SECONDS:g} s, since others are slow")


def _state(api: ApiServer, parts: Sequence[Pod]) -> NodeState | Unseen:
    """Ask the parts of a node; what the first one says of itself counts if none answers."""
    reasons: list[Unseen] = []
    for part in parts:
        what = f"what node {part.spec.node_name} says of itself"
        try:
            return read(api.get(state_path(part), {"pod": part.metadata.uid}, largest_bytes=LARGEST_BYTES))
        except UnseenError as error:
            said = UnseenError(f"{part.metadata.name}: {error}", status=error.status)
            # The node's part forbids as well, in its own words: only the API server's denial is of rights.
            is_proxy = error.status in _FORBIDDEN and "pods/proxy" not in str(error)
            right = "" if is_proxy else f"get pods/proxy in namespace {NAMESPACE}"
            reasons.append(unseen(what, said, right))
        except NodeStateError as error:
            kind = Newer if isinstance(error, NewerStateError) else Unseen
            reasons.append(kind(what=what, why=Shown(f"{part.metadata.name}: {error}")))
    return reasons[0]


def _resources(states: Iterable[NodeState | Unseen]) -> set[str]:
    """Collect what shares are called where they are allocated by the kubelet."""
    return {gpu.resource for one in states if isinstance(one, NodeState) for gpu in one.gpus if gpu.resource}


def _rank(component: str) -> int:
    return ON_NODES.index(component) if component in ON_NODES else len(ON_NODES)
