"""Look at what explains a pod beside itself: events, quotas, claims and classes; what may not be read is noted."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import chain
from time import monotonic
from typing import Final

from console.api_server import ApiServer, decoded, path_of
from console.cluster_policies import resources_of_shares
from console.denials import Created, is_over
from console.dra_objects import DeviceClass
from console.events import NOT_CREATED_REASONS, Event, Involved
from console.explain.claims import Claim, PodClaims, waiting, without_class
from console.explain.deciding import Rules, rules_of_now
from console.explain.quotas import Quota, of_shares
from console.explain.subject import EVENTS
from console.explain.warnings import NOT_ABOUT_START, of_now
from console.explain.workload import failures
from console.look import Looks
from console.objects import Pod
from console.owners import wants_pods
from console.pod_templates import Resources
from console.policy_sources import sources_seen
from console.seen import Seen, SeenPod, Unseen
from console.threads import asking
from policies.contract import DRA

_CLAIMS: Final = ("apis", "resource.k8s.io", "v1")


class Beside:
    """What there is in one namespace; each thing is looked at when it is asked for."""

    def __init__(self, api: ApiServer, namespace: str, see: Callable[[], Seen]) -> None:
        """Look at a *namespace*, and *see* the nodes where they are needed for that."""
        self._api = api
        self._see = see
        self._began_seconds = monotonic()
        self.namespace = namespace
        self._looks = Looks()
        self._quotas: tuple[str, ...] | None = None
        self._not_created: tuple[Event, ...] | None = None
        self._told: dict[str, list[Event]] = {}

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """What could not be seen so far."""
        return tuple(dict.fromkeys(self._looks.unseen))

    def note(self, unseen: Unseen) -> None:
        """Note what else could not be seen in the namespace."""
        self._looks.unseen.append(unseen)

    def quotas(self) -> tuple[str, ...]:
        """Say what the quotas leave of shares."""
        if self._quotas is None:
            path = path_of("api", "v1", "namespaces", self.namespace, "resourcequotas")
            right = f"list resourcequotas in namespace {self.namespace}"
            found = self._looks.at("quotas", right, lambda: [*self._api.all(Quota, path)], list[Quota]())
            self._quotas = tuple(of_shares(found, self.shares)) if found else ()
        return self._quotas

    @cached_property
    def rules(self) -> Rules | Unseen:
        """By what is decided in the namespace now, or why that cannot be told."""
        return rules_of_now(self._api, self.namespace, sources_seen(self._see()))

    @cached_property
    def shares(self) -> Resources:
        """How shares are called in the cluster, as far as that can be seen."""
        of_nodes = frozenset(gpu.resource for node in self._see().nodes for gpu in node.gpus if gpu.resource)
        if isinstance(self.rules, Rules):
            return Resources(self.rules.policies.cluster, of_nodes)
        return resources_of_shares(self._api, sources_seen(self._see()), of_nodes)

    def failures(self, kind: str, name: str, created: Created) -> tuple[str, ...]:
        """
        Say why pods of an object were not created; nothing where events cannot be read, which is noted.

        Nor is what is over: where one of its pods was *created* since, and where the object wants none any more.
        """
        if self._not_created is None:
            told = (self._events(f"reason={reason}") for reason in NOT_CREATED_REASONS)
            self._not_created = tuple(chain.from_iterable(told))
        found = [one for one in self._not_created if not is_over(one, created)]
        now = self._api.clock.since(self._began_seconds).at
        return tuple(failures(found, kind, name, now, wants_pods=self._wants_pods))

    def _wants_pods(self, on: Involved) -> bool:
        return wants_pods(self._api, on)

    def read_events(self, uids: Iterable[str]) -> None:
        """Read at the same time what was said of some pods."""
        with asking(self._api) as threads:
            told = {uid: threads.submit(self._of_pod, uid) for uid in uids}
        self._told.update((uid, one.result()) for uid, one in told.items())

    def events(self, uid: str) -> Sequence[Event]:
        """Give what was said of a pod, where it was read."""
        return self._told.get(uid, ())

    def in_the_way(self, pod: Pod) -> tuple[str, ...]:
        """Say the last warning about what is in the way of a pod that has a node: of all pods they are read at once."""
        if pod.status.phase != "Pending" or not pod.spec.node_name:
            return ()
        told = self._last_warnings.get(pod.metadata.uid)
        return of_now([told], pod) if told else ()

    def claims(self, pod: SeenPod, content: bytes) -> tuple[str, ...]:
        """Say for what a pod waits that is allocated by DRA; *content* is the pod as the API server gives it."""
        grant = pod.grant
        if pod.phase != "Pending" or grant is None or grant.allocation != DRA:
            return ()
        classes = self._device_classes
        right = f"get resourceclaims in namespace {self.namespace}"
        claims = self._looks.at("resource claims", right, lambda: self._claims(content), list[Claim]())
        return (*(without_class(grant, classes) if classes is not None else ()), *waiting(claims))

    def _of_pod(self, uid: str) -> list[Event]:
        return [*self._events(f"involvedObject.uid={uid}")]

    @cached_property
    def _last_warnings(self) -> dict[str, Event]:
        others = (f"reason!={one}" for one in NOT_ABOUT_START)
        newest: dict[str, Event] = {}
        for event in self._events(",".join(("involvedObject.kind=Pod", "type=Warning", *others))):
            uid = event.involved_object.uid
            newest[uid] = max(newest.get(uid, event), event, key=lambda one: one.order)
        return newest

    @cached_property
    def _device_classes(self) -> list[DeviceClass] | None:
        path = path_of(*_CLAIMS, "deviceclasses")
        return self._looks.at("DeviceClasses", "list deviceclasses", lambda: [*self._api.all(DeviceClass, path)], None)

    def _claims(self, content: bytes) -> list[Claim]:
        at = (*_CLAIMS, "namespaces", self.namespace, "resourceclaims")
        return [self._api.one(Claim, path_of(*at, name)) for name in decoded(PodClaims, content).names]

    def _events(self, selector: str) -> Sequence[Event]:
        path = path_of("api", "v1", "namespaces", self.namespace, "events")
        of = f"in namespace {self.namespace}"
        every = partial(self._api.all, Event, path, fieldSelector=selector)
        return self._looks.at(f"{EVENTS} {of}", f"list events {of}", lambda: [*every()], list[Event]())
