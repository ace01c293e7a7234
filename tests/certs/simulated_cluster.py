"""A cluster in which passes run call by call, time passes, and whatever API servers and pods may still use must fit."""

import base64
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]

from certs.cluster import Cluster, ClusterError
from certs.ensure import ensure
from certs.rotation import Rules
from policies.contract import AUTHORITY_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAME
from tests.certs.api_transports import client_in_memory
from tests.certs.simulated_api_server import ApiServer, Call, Object

NAME = "gpu-share-webhook.gpu-share.svc"
RULES = Rules(names=(NAME, f"{NAME}.cluster.local"), settle=timedelta(minutes=10))
LONGEST_PASS = timedelta(minutes=2)  # a pass that takes longer is ended by its Job
SPREAD = RULES.settle - LONGEST_PASS  # until everyone uses what was written last

Version = tuple[bytes, ...]


def configuration() -> Object:
    """Our webhook, between two of others."""
    others: list[Object] = [
        {"name": name, "clientConfig": {"url": "https://other", "caBundle": "b3RoZXI="}} for name in ("a.b.c", "x.y.z")
    ]
    ours: Object = {
        "name": WEBHOOK_NAME,
        "clientConfig": {"service": {"name": "gpu-share-webhook", "namespace": "gpu-share"}},
    }
    webhooks = [others[0], ours, others[1]]
    rest = {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return {"kind": "MutatingWebhookConfiguration", "webhooks": [webhook | rest for webhook in webhooks]}


@lru_cache(maxsize=4096)
def accepted(bundle: bytes, certificate: bytes, key: bytes, *, name: str, now: datetime) -> bool:
    """Whether an API server with *bundle* that calls *name* would accept a pod with this pair."""
    try:
        roots = x509.load_pem_x509_certificates(bundle)
        leaf = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, None)
        PolicyBuilder().store(Store(roots)).time(now).build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    except (ValueError, VerificationError):
        return False
    return private.public_key() == leaf.public_key()


class Versions:
    """What was there from when on; the last one is there now."""

    def __init__(self) -> None:
        self.all: list[tuple[datetime, Version]] = []

    def add(self, version: Version, now: datetime) -> None:
        if not self.all or self.all[-1][1] != version:
            self.all.append((now, version))

    def in_use(self, now: datetime) -> list[Version]:
        replaced = [since for since, _ in self.all[1:]]
        before = [version for (_, version), until in zip(self.all, replaced, strict=False) if until + SPREAD > now]
        return [*before, self.all[-1][1]] if self.all else []

    def forget(self) -> None:
        del self.all[:-1]


class Pass(greenlet):  # type: ignore[misc]
    """One pass, which stops before each call to the API server."""

    def __init__(self, world: "World") -> None:
        super().__init__(self._run)
        self.world = world
        self.began = world.now
        self.hands_before = world.hands
        self.hands_before_look = world.hands
        self.next_call: Call | None = None
        self.error: ClusterError | None = None
        self.switch()

    def _run(self) -> None:
        try:
            ensure(Cluster(self.world.client, namespace="gpu-share"), self.world.rules, clock=lambda: self.world.now)
        except ClusterError as error:
            self.error = error
        if self.error is None:
            self.world.pass_is_over(self)

    def step(self) -> None:
        """Make one call, and go on until the next."""
        if self.next_call and self.next_call.name == WEBHOOK_CONFIGURATION and self.next_call.verb == "get":
            self.hands_before_look = self.world.hands
        self.switch()

    def kill(self) -> None:
        self.throw(GreenletExit)


@dataclass
class World:
    """A cluster, its clock, and everything that API servers and pods may still use."""

    rules: Rules = RULES
    api: ApiServer = field(default_factory=ApiServer)
    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    hands: int = 0  # times that a person changed something
    repaired: int = 0  # how many of them a whole pass has seen
    excused: bool = True  # a person, or time, broke it; the next whole pass repairs it
    bundles: Versions = field(default_factory=Versions)
    servings: Versions = field(default_factory=Versions)
    passes: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api.put(WEBHOOK_CONFIGURATION, configuration())
        self.client = client_in_memory(self.api)
        self.api.before = self._pause
        self.api.after = self._changed

    def copy(self) -> "World":
        """Return a world that goes on from here by itself, without the passes."""
        other = World(now=self.now, hands=self.hands, repaired=self.repaired)
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

    def by_hand(self, change: Callable[["World"], object]) -> None:
        """Let a person change something, and see whether that broke it."""
        was_excused, self.excused = self.excused, True
        self.hands += 1
        change(self)
        self.excused = was_excused or not self._fits()

    def pass_time(self, duration: timedelta) -> None:
        """Put the clock forward; certificates may run out, and passes that take too long are ended."""
        self.now += duration
        for one in self.passes:
            if not one.dead and self.now - one.began > LONGEST_PASS:
                one.kill()
        self.excused = self.excused or not self._fits()

    def pass_is_over(self, one: Pass) -> None:
        """Check what a whole pass leaves behind."""
        if one.hands_before == self.hands and WEBHOOK_NAME in self.webhooks():
            assert self._is_intact(), "a pass ended, and the webhook cannot be called"
            if self.excused:
                self.bundles.forget()
                self.servings.forget()
            self.excused = False
            self.repaired = self.hands

    def webhooks(self) -> dict[str, Any]:
        webhooks = self.api.objects.get(WEBHOOK_CONFIGURATION, {}).get("webhooks", [])
        return {webhook["name"]: webhook["clientConfig"] for webhook in webhooks}

    @property
    def bundle(self) -> bytes:
        return base64.b64decode(self.webhooks().get(WEBHOOK_NAME, {}).get("caBundle", ""))

    @bundle.setter
    def bundle(self, bundle: bytes) -> None:
        changed = configuration()
        changed["webhooks"][1]["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
        self.api.put(WEBHOOK_CONFIGURATION, changed)

    def secret(self, name: str) -> dict[str, bytes]:
        data = self.api.objects.get(name, {}).get("data") or {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def put_secret(self, name: str, data: dict[str, bytes], marks: dict[str, str] | None = None) -> None:
        """Overwrite a Secret, as a person would."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        kind = "kubernetes.io/tls" if name == SERVING_SECRET else "Opaque"
        annotations = self.marks if marks is None and name == AUTHORITY_SECRET else marks or {}
        self.api.put(name, {"type": kind, "data": encoded, "metadata": {"annotations": annotations}})

    @property
    def marks(self) -> dict[str, str]:
        return dict(self.api.objects.get(AUTHORITY_SECRET, {}).get("metadata", {}).get("annotations") or {})

    def _pause(self, call: Call) -> None:
        current = getcurrent()
        if isinstance(current, Pass):
            current.next_call = call
            current.parent.switch()

    def _changed(self) -> None:
        self.bundles.add((self.bundle,), self.now)
        if serving := self.secret(SERVING_SECRET):
            self.servings.add((serving.get("tls.crt", b""), serving.get("tls.key", b"")), self.now)
        current = getcurrent()
        # No write can name the versions of two objects, so what a person does to one while a pass
        # is about to write the other goes unseen until the next look.
        unseen = isinstance(current, Pass) and current.hands_before_look != self.hands
        self.excused = self.excused or (unseen and not self._fits())
        assert self.excused or self._fits(), "an API server and a pod do not fit together any more"

    def _is_intact(self) -> bool:
        serving = self.secret(SERVING_SECRET)
        pair = serving.get("tls.crt", b""), serving.get("tls.key", b"")
        return accepted(self.bundle, *pair, name=self.rules.names[0], now=self.now)

    def _fits(self) -> bool:
        """Whether every API server accepts every pod, with what each may still use; and new pods can start."""
        return self._is_intact() and all(
            accepted(*bundle, *serving, name=self.rules.names[0], now=self.now)
            for bundle in self.bundles.in_use(self.now)
            for serving in self.servings.in_use(self.now)
        )
