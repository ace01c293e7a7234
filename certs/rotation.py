"""
When certificates change, and in what order: what to write next, and why.

A rule looks at everything there is and allows one write. A pass reads, writes and reads again until
no rule asks for more, so a pass that ends after any write leaves what the next one goes on from:

1. The authority that signs is renewed in its Secret; the one before stays beside it, and signs for now.
2. The bundle gets the new authority beside the old one. When it was first seen there is recorded.
3. After the settle time every API server has read that bundle: the new authority signs the certificate.
4. After the settle time every pod serves that certificate: the old authority leaves Secret and bundle.

A certificate that nobody can accept is replaced without waiting: there is nothing left to break.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from certs.issuer import Authority, Pair, new_authority
from certs.pem import (
    dns_names,
    fingerprint,
    read_authority,
    read_certificates,
    serving_fault,
    write_certificates,
)

CERTIFICATE, KEY = "tls.crt", "tls.key"  # in the serving Secret
NEWEST_CERTIFICATE, NEWEST_KEY = "ca.crt", "ca.key"  # in the authority Secret
OLD_CERTIFICATE, OLD_KEY = "old.crt", "old.key"  # likewise, while it is on its way out

# Annotations of the authority Secret: the fingerprint of a certificate, and when it was first seen in its place.
PUBLISHED = "gpu-share.dev/authority-in-bundle-since"
SERVED = "gpu-share.dev/certificate-in-secret-since"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the certificates are for, and how long a change takes to reach everyone."""

    names: tuple[str, ...]  # DNS names; API servers call the first
    settle: timedelta  # until every API server has read a bundle, and every kubelet projected a Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a pass has read. An empty Secret and one that is not there are the same."""

    authority: Mapping[str, bytes]
    marks: Mapping[str, str]  # annotations of the authority Secret
    serving: Mapping[str, bytes]
    bundle: bytes | None  # PEM; None if there is no webhook to trust anyone


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteAuthority:
    """Change the authority Secret; None takes an entry away."""

    reason: str
    data: Mapping[str, bytes | None]
    marks: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteServing:
    """Replace the serving certificate and its key."""

    reason: str
    pair: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBundle:
    """Replace what API servers trust."""

    reason: str
    bundle: bytes


Write = WriteAuthority | WriteServing | WriteBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the state means at one moment."""

    state: State
    rules: Rules
    now: datetime
    newest: Authority
    old: Authority | None
    trusted: tuple[x509.Certificate, ...]  # by the bundle

    def fault(self, trusted: Sequence[x509.Certificate]) -> str | None:
        """Say why the serving certificate is not accepted by a caller that trusts *trusted*."""
        pair = self.state.serving.get(CERTIFICATE, b""), self.state.serving.get(KEY, b"")
        return serving_fault(*pair, trusted=trusted, name=self.rules.names[0], now=self.now)

    def since(self, mark: str, certificate: x509.Certificate) -> datetime | None:
        """Return when *certificate* was recorded under *mark*; None if never, or in the future."""
        recorded, _, text = self.state.marks.get(mark, "").partition(" ")
        try:
            since = datetime.fromisoformat(text)
        except ValueError:
            return None
        known = recorded == fingerprint(certificate) and since.tzinfo is not None and since <= self.now
        return since if known else None

    def has_settled(self, mark: str, certificate: x509.Certificate) -> bool:
        """Say whether *certificate* was recorded long enough ago for everyone to have it."""
        since = self.since(mark, certificate)
        return since is not None and self.now - since >= self.rules.settle

    def record(self, mark: str, certificate: x509.Certificate, reason: str) -> WriteAuthority:
        """Write that *certificate* is in its place now."""
        text = f"{fingerprint(certificate)} {self.now.isoformat()}"
        return WriteAuthority(reason=reason, data={}, marks={mark: text})


def next_write(state: State, *, rules: Rules, now: datetime) -> Write | None:
    """
    Return the one write that comes next, with the reason for it; None if all is well or has to wait.

    *now* must not be earlier than the moment at which *state* was read.
    """
    newest = read_authority(*_pair(state.authority, NEWEST_CERTIFICATE, NEWEST_KEY), now=now)
    if newest is None:
        return _first_authority(state, now=now)
    seen = _Seen(
        state=state,
        rules=rules,
        now=now,
        newest=newest,
        old=read_authority(*_pair(state.authority, OLD_CERTIFICATE, OLD_KEY), now=now),
        trusted=read_certificates(state.bundle or b""),
    )
    return _renew(seen) or _publish(seen) or _serve(seen) or _retire(seen)


def _first_authority(state: State, *, now: datetime) -> WriteAuthority:
    found = NEWEST_CERTIFICATE in state.authority
    reason = "the authority cannot be used: expired, or not a good pair" if found else "there is no authority"
    # A usable old one stays: it signs until the new one is trusted everywhere.
    return WriteAuthority(reason=reason, data=_entries(new_authority(now=now)), marks={})


def _renew(seen: _Seen) -> Write | None:
    if not _is_due(seen.newest.certificate, seen.now) or OLD_CERTIFICATE in seen.state.authority:
        return None
    old = {OLD_CERTIFICATE: seen.newest.pair.certificate_pem, OLD_KEY: seen.newest.pair.key_pem}
    reason = "a third of the authority's life is left"
    return WriteAuthority(reason=reason, data=_entries(new_authority(now=seen.now)) | old, marks={})


def _publish(seen: _Seen) -> Write | None:
    if seen.state.bundle is None:
        return None
    newest = seen.newest.certificate
    ours = [each.certificate for each in (seen.newest, seen.old) if each]
    if newest not in seen.trusted and seen.state.marks.get(PUBLISHED, "").startswith(fingerprint(newest)):
        # Before the bundle: a pass that ends in between must not leave the old time beside a new bundle.
        reason = "the authority is not in the bundle, so its waiting time begins anew"
        return WriteAuthority(reason=reason, data={}, marks={PUBLISHED: None})
    bundle = write_certificates([*ours, *(each for each in seen.trusted if each not in ours)])
    if missing := [each for each in ours if each not in seen.trusted]:
        which = "the authority" if newest in missing else "the old authority, still in use,"
        return WriteBundle(reason=f"{which} is not in the bundle", bundle=bundle)
    if write_certificates(seen.trusted) != seen.state.bundle:
        return WriteBundle(reason="the bundle holds what is no certificate", bundle=bundle)
    if seen.since(PUBLISHED, newest) is None:
        return seen.record(PUBLISHED, newest, "the authority is in the bundle from now on")
    return None


def _serve(seen: _Seen) -> Write | None:
    ours = [each.certificate for each in (seen.newest, seen.old) if each]
    fault = seen.fault([*ours, *seen.trusted])
    if seen.has_settled(PUBLISHED, seen.newest.certificate):
        signer, reason = seen.newest, fault or _better_renewed(seen)
    else:
        signer, reason = seen.old or seen.newest, fault
    return WriteServing(reason=reason, pair=signer.issue(seen.rules.names, now=seen.now)) if reason else None


def _better_renewed(seen: _Seen) -> str | None:
    """Say why a certificate that is accepted should be replaced all the same, when that is safe."""
    certificate = read_certificates(seen.state.serving[CERTIFICATE])[0]
    if seen.fault([seen.newest.certificate]):
        return "the serving certificate is not of the newest authority"
    if dns_names(certificate) != set(seen.rules.names):
        return "the serving certificate is for other names"
    if _is_due(certificate, seen.now):
        return "a third of the serving certificate's life is left"
    return None


def _retire(seen: _Seen) -> Write | None:
    newest = seen.newest.certificate
    if newest not in seen.trusted or seen.fault([newest]):
        return None
    certificate = read_certificates(seen.state.serving[CERTIFICATE])[0]
    if seen.since(SERVED, certificate) is None:
        return seen.record(SERVED, certificate, "the serving certificate is in its Secret from now on")
    if not seen.has_settled(SERVED, certificate):
        return None
    if {OLD_CERTIFICATE, OLD_KEY} & seen.state.authority.keys():
        reason = "no certificate of the old authority is served any more"
        return WriteAuthority(reason=reason, data={OLD_CERTIFICATE: None, OLD_KEY: None}, marks={})
    if seen.trusted != (newest,):
        reason = "no certificate of the other authorities in the bundle is served any more"
        return WriteBundle(reason=reason, bundle=write_certificates([newest]))
    return None


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Say whether a third of the life of *certificate* is left, or less."""
    ends = certificate.not_valid_after_utc
    return now >= ends - (ends - certificate.not_valid_before_utc) / 3


def _pair(data: Mapping[str, bytes], certificate: str, key: str) -> tuple[bytes, bytes]:
    return data.get(certificate, b""), data.get(key, b"")


def _entries(newest: Authority) -> dict[str, bytes | None]:
    return {NEWEST_CERTIFICATE: newest.pair.certificate_pem, NEWEST_KEY: newest.pair.key_pem}
