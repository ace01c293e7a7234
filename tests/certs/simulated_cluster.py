"""
A cluster in which passes run call by call and time passes.

After each write it asserts that every API server accepts every pod, with whatever CA bundle and serving
certificate each may still use.
"""

import base64
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]

from certs.cluster import Cluster
from certs.ensure import ensure
from certs.errors import ClusterError
from certs.rotation import Settings
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAMES
from tests.certs.acceptance import accepted
from tests.certs.api_transports import client_in_memory
from tests.certs.simulated_api_server import Call, Object, SimulatedApiServer

NAME = "gpu-share-webhook.gpu-share.svc"
SETTINGS = Settings(names=(NAME, f"{NAME}.cluster.local"), settle=timedelta(minutes=10))
LONGEST_PASS = timedelta(minutes=2)  # a pass that takes longer is killed by its Job
PROPAGATION = SETTINGS.settle - LONGEST_PASS  # until every API server and pod uses what was written last

Version = tuple[bytes, ...]


def configuration() -> Object:
    """Return a webhook configuration with our webhooks between two of others."""
    others: list[Object] = [
        {"name": name, "clientConfig": {"url": "https://other", "caBundle": "b3RoZXI="}} for name in ("a.b.c", "x.y.z")
    ]
    service = {"name": "gpu-share-webhook", "namespace": "gpu-share"}
    ours: list[Object] = [{"name": name, "clientConfig": {"service": {**service}}} for name in WEBHOOK_NAMES]
    webhooks = [others[0], *ours, others[1]]
    rest = {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return {"kind": "MutatingWebhookConfiguration", "webhooks": [webhook | rest for webhook in webhooks]}


class History:
    """The versions of a CA bundle or a serving certificate, each with the time at which it was written."""

    def __init__(self) -> None:
        self.all: list[tuple[datetime, Version]] = []

    def add(self, version: Version, now: datetime) -> None:
        if not self.all or self.all[-1][1] != version:
            self.all.append((now, version))

    def in_use(self, now: datetime) -> list[Version]:
        replaced = [since for since, _ in self.all[1:]]
        before = [version for (_, version), until in zip(self.all, replaced, strict=False) if until + PROPAGATION > now]
        return [*before, self.all[-1][1]] if self.all else []

    def forget_past(self) -> None:
        del self.all[:-1]


class Pass(greenlet):  # type: ignore[misc]
    """One pass, which stops before each call to the API server."""

    def __init__(self, cluster: "SimulatedCluster") -> None:
        super().__init__(self._run)
        self.cluster = cluster
        self.began = cluster.now
        self.changes_before = cluster.manual_changes
        self.changes_before_read = cluster.manual_changes
        self.next_call: Call | None = None
        self.error: ClusterError | None = None
        self.switch()

    def _run(self) -> None:
        try:
            ensure(
                Cluster(self.cluster.client, namespace="gpu-share"),
                self.cluster.settings,
                clock=lambda: self.cluster.now,
            )
        except ClusterError as error:
            self.error = error
        if self.error is None:
            self.cluster.pass_ended(self)

    def step(self) -> None:
        """Make one call, and stop before the next."""
        if self.next_call and self.next_call.name == WEBHOOK_CONFIGURATION and self.next_call.verb == "get":
            self.changes_before_read = self.cluster.manual_changes
        self.switch()

    def kill(self) -> None:
        self.throw(GreenletExit)


@dataclass
class SimulatedCluster:
    """A cluster, its clock, and every CA bundle and serving certificate that API servers and pods may still use."""

    settings: Settings = SETTINGS
    api: SimulatedApiServer = field(default_factory=SimulatedApiServer)
    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    manual_changes: int = 0  # how many there were
    repaired: int = 0  # how many of them a whole pass has read
    excused: bool = True  # a manual change, or time, broke it; the next whole pass repairs it
    bundles: History = field(default_factory=History)
    servings: History = field(default_factory=History)
    passes: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api.put(WEBHOOK_CONFIGURATION, configuration())
        self.client = client_in_memory(self.api)
        self.api.before = self._pause
        self.api.after = self._changed

    def copy(self) -> "SimulatedCluster":
        """Return an independent copy, without the passes."""
        other = SimulatedCluster(now=self.now, manual_changes=self.manual_changes, repaired=self.repaired)
        other.api.objects = copy.deepcopy(self.api.objects)
        other.api.writes = self.api.writes
        other.bundles.all, other.servings.all = [*self.bundles.all], [*self.servings.all]
        other.excused = self.excused
        return other

    def start(self) -> Pass:
        started = Pass(self)
        self.passes.append(started)
        return started

    def run(self) -> None:
        """Make a whole pass."""
        one = self.start()
        while not one.dead:
            one.step()
        if one.error:
            raise one.error

    def change_manually(self, change: Callable[["SimulatedCluster"], object]) -> None:
        """Apply a manual change, which may break it."""
        was_excused, self.excused = self.excused, True
        self.manual_changes += 1
        change(self)
        self.excused = was_excused or not self._all_accepted()

    def pass_time(self, duration: timedelta) -> None:
        """Put the clock forward: certificates may expire, and passes that take too long are killed."""
        self.now += duration
        for one in self.passes:
            if not one.dead and self.now - one.began > LONGEST_PASS:
                one.kill()
        self.excused = self.excused or not self._all_accepted()

    def pass_ended(self, one: Pass) -> None:
        """Assert that the webhook can be called after a whole pass without manual changes."""
        if one.changes_before == self.manual_changes and self.webhooks():
            assert self._current_accepted(), "a pass ended, and the webhook cannot be called"
            if self.excused:
                self.bundles.forget_past()
                self.servings.forget_past()
            self.excused = False
            self.repaired = self.manual_changes

    def webhooks(self) -> dict[str, Any]:
        """Return our webhooks by name."""
        webhooks = self.api.objects.get(WEBHOOK_CONFIGURATION, {}).get("webhooks", [])
        return {webhook["name"]: webhook["clientConfig"] for webhook in webhooks if webhook["name"] in WEBHOOK_NAMES}

    @property
    def each_bundle(self) -> Version:
        """The CA bundle of each of our webhooks."""
        return tuple(base64.b64decode(each.get("caBundle", "")) for each in self.webhooks().values())

    @property
    def bundle(self) -> bytes:
        """The CA bundle of the first of our webhooks."""
        return (*self.each_bundle, b"")[0]

    @bundle.setter
    def bundle(self, bundle: bytes) -> None:
        self.put_bundles(*(bundle for _ in WEBHOOK_NAMES))

    def put_bundles(self, *bundles: bytes) -> None:
        """Overwrite the CA bundles of our webhooks, one after the other, as a person would."""
        changed = configuration()
        for webhook, bundle in zip(changed["webhooks"][1:], bundles, strict=False):
            webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
        self.api.put(WEBHOOK_CONFIGURATION, changed)

    def secret(self, name: str) -> dict[str, bytes]:
        data = self.api.objects.get(name, {}).get("data") or {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def put_secret(self, name: str, data: dict[str, bytes], annotations: dict[str, str] | None = None) -> None:
        """Overwrite a Secret, as a person would."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        kind = "kubernetes.io/tls" if name == SERVING_SECRET else "Opaque"
        annotations = self.annotations if annotations is None and name == CA_SECRET else annotations or {}
        self.api.put(name, {"type": kind, "data": encoded, "metadata": {"annotations": annotations}})

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.api.objects.get(CA_SECRET, {}).get("metadata", {}).get("annotations") or {})

    def _pause(self, call: Call) -> None:
        current = getcurrent()
        if isinstance(current, Pass):
            current.next_call = call
            current.parent.switch()

    def _changed(self) -> None:
        self.bundles.add(self.each_bundle, self.now)
        if serving := self.secret(SERVING_SECRET):
            self.servings.add((serving.get("tls.crt", b""), serving.get("tls.key", b"")), self.now)
        current = getcurrent()
        # No write can check the versions of two objects, so a manual change of one while a pass is about
        # to write the other is noticed only at the next read.
        unseen = isinstance(current, Pass) and current.changes_before_read != self.manual_changes
        self.excused = self.excused or (unseen and not self._all_accepted())
        assert self.excused or self._all_accepted(), "an API server would reject the certificate of a pod"

    def _current_accepted(self) -> bool:
        serving = self.secret(SERVING_SECRET)
        pair = serving.get("tls.crt", b""), serving.get("tls.key", b"")
        return self._accept(self.each_bundle, pair)

    def _accept(self, bundles: Version, serving: Version) -> bool:
        """Whether an API server accepts a pod with this certificate, whichever of the webhooks it calls."""
        certificate, key = serving
        name = self.settings.names[0]
        return bool(bundles) and all(accepted(each, certificate, key, name=name, now=self.now) for each in bundles)

    def _all_accepted(self) -> bool:
        """Whether every API server accepts every pod, with what each may still use now."""
        return self._current_accepted() and all(
            self._accept(bundle, serving)
            for bundle in self.bundles.in_use(self.now)
            for serving in self.servings.in_use(self.now)
        )
