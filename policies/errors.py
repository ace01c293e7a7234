"""
What can go wrong with what a user wrote, or with what others answer for a user.

    GpuShareError
    ├── ShareError          an invalid share
    ├── PolicyError         a directory of policy files that cannot be used, with every problem in it
    ├── DocumentError       an invalid YAML document (reading/document.py)
    ├── NodeStateError      an answer that is not the state of a node (node_state.py)
    ├── VolumeError         a volume of policy files that no pod can mount (policy_volume.py)
    └── in webhook/ and console/, beside what raises them: BadCall, ClusterError, UnreadableError,
        NoClusterError, UnseenError, NotFoundError
"""

import msgspec


class GpuShareError(Exception):
    """Never raised itself: catch it to turn what went wrong into one clear sentence."""


class ShareError(GpuShareError, ValueError):
    """An invalid share. A ValueError too, so that msgspec gives it a place in the document."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason  # completes "it ..."
        super().__init__(f'invalid share {quoted(text)}, it {reason}: write it like "0.2", "20%" or "1"')


class Problem(msgspec.Struct, frozen=True, order=True):
    """One fault in one policy file."""

    file: str  # empty if the fault is the directory as a whole
    line: int  # 1 is the first; 0 if the fault is the file as a whole
    field: str  # dotted path such as `share.maximum`; empty if the fault is not in a field
    message: str  # what was expected, what came, what to do

    def below(self, directory: str) -> "Problem":
        """Name the file by its path from *directory* on; the directory itself, if there is no file."""
        path = f"{directory.rstrip('/')}/{self.file}" if self.file else directory
        return Problem(path, self.line, self.field, self.message)

    @property
    def place(self) -> str:
        """File and line, as editors open them."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def told(self) -> str:
        """What is wrong, without the place."""
        return f"{self.field}: {self.message}" if self.field else self.message

    def __str__(self) -> str:
        return f"{self.place}: {self.told}"


class PolicyError(GpuShareError):
    """A directory of policy files that cannot be used."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")


def quoted(text: str, longest: int = 40) -> str:
    """Show hostile *text* in a message: printable, in quotes, at most *longest* characters and quotes."""
    head = text[: longest + 1]  # a text of megabytes costs what a word does
    safe = head.replace("\\", r"\\") if head.isascii() and head.isprintable() else ascii(head)[1:-1]
    safe = safe.replace('"', r"\"")
    return f'"{safe}"' if len(safe) <= longest else f'"{safe[: longest - 1]}…"'
