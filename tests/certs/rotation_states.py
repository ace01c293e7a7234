"""States, and what passes make of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from certs.issuer import Pair
from certs.pem import read_certificates
from certs.rotation import Rules, State, Write, WriteAuthority, WriteBundle, WriteServing, next_write

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMES = ("gpu-share-webhook.gpu-share.svc", "gpu-share-webhook.gpu-share.svc.cluster.local")
RULES = Rules(names=NAMES, settle=timedelta(minutes=10))
EMPTY = State(authority={}, marks={}, serving={}, bundle=b"")
SETTLED = timedelta(minutes=10)
ALMOST = timedelta(minutes=9, seconds=59)


def carried_out(state: State, write: Write) -> State:
    match write:
        case WriteAuthority():
            data = {name: value for name, value in {**state.authority, **write.data}.items() if value is not None}
            marks = {name: value for name, value in {**state.marks, **write.marks}.items() if value is not None}
            return replace(state, authority=data, marks=marks)
        case WriteServing():
            return replace(state, serving={"tls.crt": write.pair.certificate_pem, "tls.key": write.pair.key_pem})
        case WriteBundle():
            return replace(state, bundle=write.bundle)


def passed(state: State, now: datetime) -> tuple[State, list[str]]:
    """Make a whole pass; gives what it leaves, and its reasons."""
    reasons = []
    while write := next_write(state, rules=RULES, now=now):
        reasons.append(write.reason)
        state = carried_out(state, write)
        assert len(reasons) < 10, reasons
    return state, reasons


def installed() -> State:
    """What a first pass leaves at NOW."""
    return passed(EMPTY, NOW)[0]


def serving(state: State) -> bytes:
    return state.serving["tls.crt"]


def number_trusted(state: State) -> int:
    return len(read_certificates(state.bundle or b""))


def files(pair: Pair) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


def overlapping() -> tuple[State, datetime]:
    """A new authority is in the bundle since a moment ago, and the old one still signs."""
    day = NOW + timedelta(days=244)
    state = passed(passed(EMPTY, NOW)[0], day - timedelta(days=5))[0]
    return passed(state, day)[0], day
