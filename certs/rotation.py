"""
Decide what to write next to issue and rotate certificates, and why.

`next_write` looks at the whole state and returns one write. A pass reads, writes and reads again until
nothing is left to write, so the next pass can continue from wherever one has stopped:

1. A new CA is written to the CA Secret. The old one stays beside it, and issues certificates for now.
2. The new CA is added to the CA bundle beside the old one. The time at which it was first seen there is recorded.
3. After the settle time every API server has read that bundle: the new CA issues the serving certificate.
4. After the settle time every pod serves that certificate: the old CA is removed from Secret and CA bundle.

A serving certificate that no client accepts is replaced at once: there is nothing left to break.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from cryptography import x509

from certs.issuer import CA, Pair, new_ca
from certs.pem import (
    dns_names,
    fingerprint,
    read_ca,
    serving_fault,
    write_certificates,
)
from program.certificates import read_certificates

CERTIFICATE, KEY = "tls.crt", "tls.key"  # in the serving Secret
NEWEST_CERTIFICATE, NEWEST_KEY = "ca.crt", "ca.key"  # in the CA Secret
OLD_CERTIFICATE, OLD_KEY = "old.crt", "old.key"  # likewise, until no pod serves a certificate that it has issued

# Annotations of the CA Secret: the fingerprint of a certificate, and when it was first seen there.
PUBLISHED = "gpu-share.dev/authority-in-bundle-since"
SERVED = "gpu-share.dev/certificate-in-secret-since"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the certificates are for, and how long a change takes to reach every client and pod."""

    names: tuple[str, ...]  # DNS names; API servers call the first
    settle: timedelta  # until every API server has read a CA bundle, and every kubelet has projected a Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a pass has read. A Secret that does not exist is the same as an empty one."""

    ca: Mapping[str, bytes]  # data of the CA Secret
    annotations: Mapping[str, str]  # of the CA Secret
    serving: Mapping[str, bytes]  # data of the serving Secret
    bundle: bytes | None  # the CA bundle, PEM; None if there is no webhook to publish it in
    elsewhere: bytes | None = None  # where our webhooks have different ones, and `bundle` is what all have: the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCA:
    """Change the CA Secret; None deletes an entry."""

    what: ClassVar[str] = "CA Secret"
    reason: str
    data: Mapping[str, bytes | None]
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteServing:
    """Replace the serving certificate and its key."""

    what: ClassVar[str] = "serving Secret"
    reason: str
    pair: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBundle:
    """Replace the CA bundle, which API servers trust."""

    what: ClassVar[str] = "CA bundle"
    reason: str
    bundle: bytes


Write = WriteCA | WriteServing | WriteBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """A state, and what it holds that is valid now."""

    state: State
    settings: Settings
    now: datetime
    time: datetime  # of the API server, by which settle times are measured
    newest: CA
    old: CA | None
    trusted: tuple[x509.Certificate, ...]  # the CA bundle

    @property
    def ours(self) -> list[x509.Certificate]:
        """The CAs of the CA Secret that are valid."""
        return [each.certificate for each in (self.newest, self.old) if each]

    @property
    def serving_certificate(self) -> x509.Certificate:
        """The serving certificate; only where `fault` has found none."""
        return read_certificates(self.state.serving[CERTIFICATE])[0]

    def fault(self, trusted: Sequence[x509.Certificate]) -> str | None:
        """Return why a client that trusts *trusted* rejects the serving certificate; None if it accepts it."""
        pair = _pair(self.state.serving, CERTIFICATE, KEY)
        return serving_fault(*pair, trusted=trusted, name=self.settings.names[0], now=self.now)

    def since(self, annotation: str, certificate: x509.Certificate) -> datetime | None:
        """Return the time that *annotation* records for *certificate*; None without one, or with one in the future."""
        recorded, _, text = self.state.annotations.get(annotation, "").partition(" ")
        try:
            since = datetime.fromisoformat(text)
        except ValueError:
            return None
        known = recorded == fingerprint(certificate) and since.tzinfo is not None and since <= self.time
        return since if known else None

    def has_settled(self, annotation: str, certificate: x509.Certificate) -> bool:
        """Return whether the settle time has passed since *annotation* recorded *certificate*."""
        since = self.since(annotation, certificate)
        return since is not None and self.time - since >= self.settings.settle

    def record(self, annotation: str, certificate: x509.Certificate, reason: str) -> WriteCA:
        """Return the write that records *certificate* with the time now under *annotation*."""
        text = f"{fingerprint(certificate)} {self.time.isoformat()}"
        return WriteCA(reason=reason, data={}, annotations={annotation: text})


def next_write(state: State, *, settings: Settings, now: datetime, time: datetime | None = None) -> Write | None:
    """
    Return the next write, with its reason; None if nothing is due, or has to wait for the settle time.

    *now* must not be earlier than the time at which *state* was read. *time* is what the API server says it is, None if
    it does not: passes on nodes with different clocks measure a settle time by the same one.
    """
    newest = read_ca(*_pair(state.ca, NEWEST_CERTIFICATE, NEWEST_KEY), now=now)
    if newest is None:
        return _create_ca(state, now=now)
    observed = _Observed(
        state=state,
        settings=settings,
        now=now,
        time=time or now,
        newest=newest,
        old=read_ca(*_pair(state.ca, OLD_CERTIFICATE, OLD_KEY), now=now),
        trusted=read_certificates(state.bundle or b""),
    )
    return _renew(observed) or _publish(observed) or _issue(observed) or _retire(observed)


def _create_ca(state: State, *, now: datetime) -> WriteCA:
    found = NEWEST_CERTIFICATE in state.ca
    reason = "the CA is invalid: not valid now, or certificate and key do not match" if found else "there is no CA"
    # A valid old CA stays: it issues certificates until every API server trusts the new one.
    return WriteCA(reason=reason, data=_entries(new_ca(now=now)), annotations={})


def _renew(observed: _Observed) -> Write | None:
    if not _is_due(observed.newest.certificate, observed.now) or OLD_CERTIFICATE in observed.state.ca:
        return None
    old = {OLD_CERTIFICATE: observed.newest.pair.certificate_pem, OLD_KEY: observed.newest.pair.key_pem}
    reason = "a third of the CA's lifetime is left"
    return WriteCA(reason=reason, data=_entries(new_ca(now=observed.now)) | old, annotations={})


def _publish(observed: _Observed) -> Write | None:
    if observed.state.bundle is None:
        return None
    newest = observed.newest.certificate
    ours = observed.ours
    if newest not in observed.trusted and observed.state.annotations.get(PUBLISHED, "").startswith(fingerprint(newest)):
        # Before the CA bundle: a pass that stops in between must not leave the old time beside a new bundle.
        reason = "the CA is missing from the CA bundle, so its settle time starts again"
        return WriteCA(reason=reason, data={}, annotations={PUBLISHED: None})
    elsewhere = read_certificates(observed.state.elsewhere or b"")
    bundle = write_certificates(dict.fromkeys([*ours, *observed.trusted, *elsewhere]))
    if missing := [each for each in ours if each not in observed.trusted]:
        which = "the CA" if newest in missing else "the old CA, still in use,"
        return WriteBundle(reason=f"{which} is missing from the CA bundle", bundle=bundle)
    if observed.state.elsewhere is not None:
        return WriteBundle(reason="the webhooks have different CA bundles", bundle=bundle)
    if write_certificates(observed.trusted) != observed.state.bundle:
        return WriteBundle(reason="the CA bundle holds something other than certificates", bundle=bundle)
    if observed.since(PUBLISHED, newest) is None:
        return observed.record(PUBLISHED, newest, "the CA is in the CA bundle: its settle time starts")
    return None


def _issue(observed: _Observed) -> Write | None:
    fault = observed.fault([*observed.ours, *observed.trusted])
    if observed.has_settled(PUBLISHED, observed.newest.certificate):
        issuer, reason = observed.newest, fault or _renewal_reason(observed)
    else:
        issuer, reason = observed.old or observed.newest, fault
    return WriteServing(reason=reason, pair=issuer.issue(observed.settings.names, now=observed.now)) if reason else None


def _renewal_reason(observed: _Observed) -> str | None:
    """Return why a serving certificate that clients accept should be replaced; None if it should not."""
    if observed.fault([observed.newest.certificate]):
        return "the serving certificate was not issued by the newest CA"
    if dns_names(observed.serving_certificate) != set(observed.settings.names):
        return "the serving certificate is for other DNS names"
    if _is_due(observed.serving_certificate, observed.now):
        return "a third of the serving certificate's lifetime is left"
    return None


def _retire(observed: _Observed) -> Write | None:
    newest = observed.newest.certificate
    if newest not in observed.trusted or observed.fault([newest]):
        return None
    certificate = observed.serving_certificate
    if observed.since(SERVED, certificate) is None:
        return observed.record(SERVED, certificate, "the serving certificate is in its Secret: its settle time starts")
    if not observed.has_settled(SERVED, certificate):
        return None
    if {OLD_CERTIFICATE, OLD_KEY} & observed.state.ca.keys():
        reason = "no pod serves a certificate of the old CA any more"
        return WriteCA(reason=reason, data={OLD_CERTIFICATE: None, OLD_KEY: None}, annotations={})
    if observed.trusted != (newest,):
        reason = "no pod serves a certificate of the other CAs in the CA bundle any more"
        return WriteBundle(reason=reason, bundle=write_certificates([newest]))
    return None


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether a third of the lifetime of *certificate* is left, or less."""
    ends = certificate.not_valid_after_utc
    return now >= ends - (ends - certificate.not_valid_before_utc) / 3


def _pair(data: Mapping[str, bytes], certificate: str, key: str) -> tuple[bytes, bytes]:
    return data.get(certificate, b""), data.get(key, b"")


def _entries(newest: CA) -> dict[str, bytes | None]:
    return {NEWEST_CERTIFICATE: newest.pair.certificate_pem, NEWEST_KEY: newest.pair.key_pem}
