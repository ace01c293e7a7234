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
    "ConflictingRequest",
    "ReservedEnvironment",
    "PrivilegedContainer",
    "HostUsersConflict",
    "MemoryArgumentAboveShare",
]

LONGEST_MESSAGE = 256  # characters


class Deny(msgspec.Struct, frozen=True):
    """Why a pod is denied."""

    code: Code
    message: str  # at most LONGEST_MESSAGE characters


class DeniedError(Exception):
    """Raised inside the rules where a pod turns out to be denied; `decide` turns it into a `Deny`."""

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
        room = LONGEST_MESSAGE - len(source) - len(self.fix) - 3
        return Deny(self.code, f"{shorten(self.what, room)}{source}. {self.fix}.")


def shorten(text: str, longest: int) -> str:
    """Cut *text* to at most *longest* characters, and show that it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
