"""The result of all checks: as lines with ✓, ! and ✗, and for programs."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from rich.text import Text

from console.doctor.installation import Installation
from console.doctor.of_admission import ADMISSION
from console.doctor.of_cluster_file import CLUSTER_FILE_GIVEN
from console.doctor.of_dra import DEVICES, GATES, GATES_FOR_LATER
from console.doctor.of_exempt import EXEMPT
from console.doctor.of_kubernetes import KUBERNETES, KUBERNETES_FOR_LATER, RIGHTS
from console.doctor.of_nodes import NODES
from console.doctor.of_parts import PARTS
from console.doctor.of_policies import POLICIES
from console.doctor.of_reach import REACH
from console.doctor.of_runtimes import RUNTIMES
from console.doctor.of_second_places import SECOND_PLACES
from console.doctor.of_shares import SHARES
from console.doctor.of_shipped import SHIPPED_RULES
from console.doctor.of_webhook import WEBHOOK
from console.doctor.of_workloads import WORKLOADS
from console.doctor.verdict import Check, Status
from console.seen import Seen
from program.duration import duration

AFTER: Final = (
    ("Kubernetes", (*KUBERNETES, *GATES)),
    ("Webhook", WEBHOOK),
    ("Policies", (*POLICIES, CLUSTER_FILE_GIVEN, ADMISSION, REACH, *SHIPPED_RULES, *SECOND_PLACES, EXEMPT)),
    ("Nodes", (*PARTS, *NODES, *DEVICES)),
    ("Drivers and runtimes", RUNTIMES),
    ("Pods", (*WORKLOADS, *SHARES)),
)
BEFORE: Final = (("Kubernetes", (*KUBERNETES_FOR_LATER, *GATES_FOR_LATER, *RIGHTS)),)
_SAME_CLOCK_SECONDS: Final = 60.0  # apart at most
_SIGNS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "failure": ("✗", "red"),
    "unknown": ("?", "yellow"),
    "not-applicable": ("-", "dim"),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    section: str
    check: str
    says: str
    status: Status
    found: tuple[str, ...]
    hint: str
    right: str
    page: str


def findings(on: Installation, sections: Sequence[tuple[str, Sequence[Check]]]) -> tuple[Finding, ...]:
    """Make all checks."""
    return tuple(_finding(section, check, on) for section, checks in sections for check in checks)


def has_failed(found: Sequence[Finding]) -> bool:
    """Whether something is wrong: what is odd or not known is not, nor what there is nothing of."""
    return any(one.status == "failure" for one in found)


def saw_nothing(found: Sequence[Finding]) -> bool:
    """Whether nothing could be judged, and not for want of a right."""
    judged = [one for one in found if one.status != "not-applicable"]
    return bool(judged) and all(one.status == "unknown" and not one.right for one in judged)


def clock_note(seen: Seen) -> str:
    """Say that the clock of this machine differs from the API server's by more than a minute; empty if not."""
    if abs(seen.ahead_seconds) <= _SAME_CLOCK_SECONDS:
        return ""
    apart = f"{duration(abs(seen.ahead_seconds))} {'ahead of' if seen.ahead_seconds > 0 else 'behind'}"
    return f"this machine's clock is {apart} the API server's, by which all times here count: set the one that is wrong"


def lines(found: Sequence[Finding], *, cluster: str, clock: str = "") -> Iterator[Text]:
    """
    Name the cluster, say what is odd about the *clock*, if anything is, and write a line for each check.

    Below it is what was found, and what to do, or why there was nothing to judge.
    """
    yield Text(cluster, "bold")
    yield from (Text(f"! {clock}", "yellow") for _ in range(bool(clock)))
    section = ""
    for one in found:
        if one.section != section:
            yield Text()
            yield Text(one.section, "bold")
            section = one.section
        sign, colour = _SIGNS[one.status]
        is_short = one.status in ("ok", "not-applicable")
        why = f": {'; '.join(one.found)}" if is_short and one.found else ""
        yield Text.assemble((f"{sign} ", colour), one.says, (why, colour))
        if is_short:
            continue
        yield from (Text(f"    {sentence}", colour) for sentence in one.found)
        if one.right:
            yield Text(f"    the right to {one.right} is missing")
        if one.hint:
            yield Text(f"    hint: {one.hint}")
        yield Text(f"    see docs/{one.page}", "dim")
    counted = {status: sum(one.status == status for one in found) for status in _SIGNS}
    told = [f"{counted[status]} {word}" for status, word in _WORDS if counted[status]]
    yield Text()
    yield Text(f"{len(found)} checks: {', '.join(told)}")


_WORDS: Final[tuple[tuple[Status, str], ...]] = (
    ("ok", "in order"),
    ("warning", "to look at"),
    ("failure", "failed"),
    ("unknown", "not seen"),
    ("not-applicable", "with nothing to judge"),
)


def _finding(section: str, check: Check, on: Installation) -> Finding:
    verdict = check.verdict(on)
    return Finding(
        section=section,
        check=check.name,
        says=check.says,
        status=verdict.status,
        found=verdict.found,
        hint=verdict.hint,
        right=verdict.right,
        page=check.page,
    )
