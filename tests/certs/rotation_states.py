"""States of the rotation, and what a pass makes of them, with no API server."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from certs.issuer import Pair
from certs.rotation import Settings, State, Write, WriteBundle, WriteCA, WriteServing, next_write
from program.certificates import read_certificates

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMES = ("gpu-share-webhook.gpu-share.svc", "gpu-share-webhook.gpu-share.svc.cluster.local")
SETTINGS = Settings(names=NAMES, settle=timedelta(minutes=10))
EMPTY = State(ca={}, annotations={}, serving={}, bundle=b"")
SETTLED = timedelta(minutes=10)
ALMOST_SETTLED = timedelta(minutes=9, seconds=59)


def applied(state: State, write: Write) -> State:
    match write:
        case WriteCA():
            data = {name: value for name, value in {**state.ca, **write.data}.items() if value is not None}
            annotations = {
                name: value for name, value in {**state.annotations, **write.annotations}.items() if value is not None
            }
            return replace(state, ca=data, annotations=annotations)
        case WriteServing():
            return replace(state, serving={"tls.crt": write.pair.certificate_pem, "tls.key": write.pair.key_pem})
        case WriteBundle():
            return replace(state, bundle=write.bundle, elsewhere=None)


def after_pass(state: State, now: datetime) -> tuple[State, list[str]]:
    """Return the state after a whole pass, and the reasons of its writes."""
    reasons = []
    while write := next_write(state, settings=SETTINGS, now=now):
        reasons.append(write.reason)
        state = applied(state, write)
        assert len(reasons) < 10, reasons
    return state, reasons


def serving(state: State) -> bytes:
    return state.serving["tls.crt"]


def trusted_cas(state: State) -> int:
    return len(read_certificates(state.bundle or b""))


def files(pair: Pair) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


def overlapping() -> tuple[State, datetime]:
    """Return a state in which a new CA was just published and the old one still issues, and its time."""
    day = NOW + timedelta(days=244)
    state = after_pass(after_pass(EMPTY, NOW)[0], day - timedelta(days=5))[0]
    return after_pass(state, day)[0], day
