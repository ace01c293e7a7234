"""Denials: a code, one sentence of what was asked and what is allowed, the policy's file and line, and the fix."""

from typing import Literal

import msgspec

Code = Literal[
    "ShareMalformed",
    "ShareBelowMinimum",
    "ShareAboveMaximum",
    "PodShareAboveMaximum",
    "NotWholeVgpus",
    "SharingDisabled",
    "PolicyBroken",
    "UnknownContainer",
    "DeviceNotAllowed",
    "ConflictingRequest",
    "ReservedEnvironment",
    "ReservedAnnotation",
    "PrivilegedContainer",
    "HostUsersConflict",
    "MemoryArgumentAboveShare",
    "PodTooLarge",
]

LONGEST_MESSAGE = 256  # characters
MOST_REASONS = 100  # of one pod
MOST_CHANGES = 16  # to what users wrote in one pod


class Deny(msgspec.Struct, frozen=True):
    """Why a pod is denied."""

    code: Code
    what: str  # what was asked and what is allowed
    ending: str  # the policy's file and line, and what to do

    @property
    def message(self) -> str:
        """All of it, in at most LONGEST_MESSAGE characters."""
        return self.with_more(0)

    def with_more(self, others: int) -> str:
        """Write the message, and how many *others* there are; no longer than without them, at most."""
        more = f" And {others} more reason{'s' * (others > 1)}." if others else ""
        return f"{shorten(self.what, LONGEST_MESSAGE - len(self.ending) - len(more))}{self.ending}{more}"


class DeniedError(Exception):
    """One reason to deny a pod; raised inside the rules where nothing after it could be checked."""

    def __init__(self, code: Code, what: str, fix: str, *, by: object = None) -> None:
        """
        Deny a pod.

        Args:
            code: What kind of denial it is.
            what: What was asked and what is allowed, without a full stop.
            fix: What to do, without a full stop; it is never cut.
            by: Where the policy's field that forbids it is written; None if no single field does.
        """
        self.code: Code = code
        self.what = what
        self.fix = fix
        self.by = by
        super().__init__(what)

    def deny(self) -> Deny:
        """Build the denial."""
        source = f" ({self.by})" if self.by is not None else ""
        return Deny(self.code, self.what, f"{source}. {self.fix}.")


class Findings:
    """What the checks find in one pod, in their order. They go on after a denial, so that no reason hides another."""

    __slots__ = ("_changes", "denials", "warnings")

    def __init__(self) -> None:
        self._changes = 0
        self.denials: list[Deny] = []
        self.warnings: list[str] = []

    def deny(self, code: Code, what: str, fix: str, *, by: object = None) -> None:
        """Add a reason to deny the pod, as `DeniedError` takes it."""
        self.add(DeniedError(code, what, fix, by=by))

    def add(self, error: DeniedError) -> None:
        """
        Add a reason to deny the pod.

        Raises:
            DeniedError: It is this one if there are enough of them: a pod that big is nobody's mistake.
        """
        if len(self.denials) == MOST_REASONS - 1:
            try:
                raise error
            finally:
                del error  # which holds this frame
        self.end(error)

    def end(self, error: DeniedError) -> None:
        """Add the last reason, after which nothing could be checked."""
        # Not the error: it holds the frames that it came through, and they hold these findings, the pod and its body.
        self.denials.append(error.deny())

    def warn(self, text: str) -> None:
        """Tell the user something about a pod that is granted."""
        self.warnings.append(text)

    def change(self, text: str | None) -> None:
        """
        Warn of something in the pod that is lowered or removed; with None it is counted, and was warned of before.

        Raises:
            DeniedError: If there is so much of it that it is nobody's mistake.
        """
        self._changes += 1
        if self._changes > MOST_CHANGES:
            what = f"More than {MOST_CHANGES} values in the pod would have to be lowered or removed"
            raise DeniedError("PodTooLarge", what, "Correct them: `gpu-share preview` shows each")
        if text is not None:
            self.warn(text)

    def reasons(self) -> tuple[Deny, ...]:
        """Build the denials, none of them twice."""
        return tuple(dict.fromkeys(self.denials))

    def told(self) -> tuple[str, ...]:
        """Return the warnings, none of them twice: a text may say the same in several places."""
        return tuple(dict.fromkeys(self.warnings))


def shorten(text: str, longest: int) -> str:
    """Cut *text* to at most *longest* characters, and show that it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
