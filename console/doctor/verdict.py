"""A check and what comes of it."""

from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from console.doctor.installation import Installation
from console.seen import Unseen
from console.words import KEPT, Shown
from policies.policy_set import PolicySet

APPLY: Final = "apply what you installed: kubectl apply -k manifests, or your overlay or kustomization"
_MOST: Final = 10  # sentences of one check
_USE_ITS: Final = "use the gpu-share of the cluster's version"

Status = Literal["ok", "warning", "failure", "unknown", "not-applicable"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found."""

    status: Status
    found: tuple[str, ...] = ()  # a sentence each, without a full stop; where all is well, of what that is not known
    hint: str = ""  # what to do
    right: str = ""  # by which more could be seen


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question, and how it is answered."""

    name: str  # for programs
    says: str  # what holds if all is well
    page: str  # of the documents, with the section
    judge: Callable[[Installation], Verdict]
    absent: Callable[[Installation], str] = lambda _: ""  # why there is nothing to judge; empty if there is something
    rests_on: tuple[str, ...] = ()  # what must have been seen before nothing found means that all is well: STATES, ...

    def verdict(self, on: Installation) -> Verdict:
        """Judge; where nothing was found because nothing was seen, that is unknown."""
        made = self.judge(on)
        if made.status == "ok" and (why := self.absent(on)):
            made = not_applicable(why)
        if made.status not in ("ok", "not-applicable"):
            return made
        return next((unknown(hidden) for one in self.rests_on if (hidden := on.seen.hidden(one))), made)


OK = Verdict(status="ok")


def warn(*found: str, hint: str) -> Verdict:
    """Say that something is odd; all is well if nothing was found."""
    return Verdict(status="warning", found=found, hint=hint) if found else OK


def fail(*found: str, hint: str) -> Verdict:
    """Say that something is wrong; all is well if nothing was found."""
    return Verdict(status="failure", found=found, hint=hint) if found else OK


def cut(found: list[str]) -> list[str]:
    """Leave out what is too much to read."""
    return found if len(found) <= _MOST else [*found[:_MOST], f"and {len(found) - _MOST} more"]


def unknown(why: str | Unseen | None) -> Verdict:
    """Say why nothing is known."""
    if isinstance(why, Unseen):
        return Verdict(status="unknown", found=(why.why,), right=why.right)
    return Verdict(status="unknown", found=(why or "it cannot be seen",))


def not_applicable(why: str) -> Verdict:
    """Say why there is nothing to judge."""
    return Verdict(status="not-applicable", found=(why,))


def not_seen(installation: Installation, *fields: str) -> Verdict | None:
    """Say why something cannot be judged, if one of *fields* is missing."""
    for name in fields:
        if name in installation.unseen:
            return unknown(installation.unseen[name])
        if name == "policies" and installation.has_no_policies:
            return unknown(_no_policies(installation))
    return None


def not_listed(installation: Installation, what: str) -> Verdict | None:
    """Say why something cannot be judged, if *what*, such as SHARED_PODS, cannot be listed."""
    hidden = installation.seen.hidden(what)
    return unknown(hidden) if hidden else None


def policies_of(installation: Installation, *fields: str) -> PolicySet | Verdict:
    """Return the policies, or why they cannot be held against *fields*."""
    if missing := not_seen(installation, "policies", *fields):
        return missing
    return installation.policies or unknown(_no_policies(installation))


def of_this_version(made: Verdict, installation: Installation) -> Verdict:
    """Say that it is not known where something was found by what another version, which a node runs, has otherwise."""
    if made.status not in ("warning", "failure") or not installation.other_version:
        return made
    return unlike(installation.other_version, *made.found)


def unlike(version: str, *found: str) -> Verdict:
    """Say that what was *found* is not known to be wrong, by the other *version* that is in the cluster."""
    return Verdict(status="unknown", found=(*found, version), hint=_USE_ITS)


def unless_broken(made: Verdict, installation: Installation, namespaces: Iterable[str] | None = None) -> Verdict:
    """Say that it is not known where nothing was found, and the policy of one of *namespaces*, or of any, is broken."""
    if made.status not in ("ok", "not-applicable"):
        return made
    broken = installation.broken_policies
    names = broken if namespaces is None else [one for one in namespaces if one in broken]
    problems = [Shown(str(broken[one])) for one in names]
    why = installation.newer_version(*problems) or KEPT
    return unknown(f"{'; '.join(cut([*problems]))}: {why}") if problems else made


def _no_policies(installation: Installation) -> str:
    if newer := installation.newer_version(*(installation.policy_problems or ())):
        return f"there are no policies that this gpu-share can read: {newer}"
    return "there are no valid policies"
