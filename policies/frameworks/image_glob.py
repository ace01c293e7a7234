"""A glob for the end of an image's repository, in a time that is linear in the repository, whatever the two are."""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import cache
from typing import Final

_PIECE: Final = re.compile(r"\[!?+\]?+[^\]]*+\]|.", re.DOTALL)  # what is for one character, as fnmatch reads it
_Find = Callable[[str, int, int], int]  # a part in a text, from one place on and before another; -1 if it is not there


class ImageGlob:
    """
    Fits a path that ends in what the glob says, from any of its slashes on; `*` stands for slashes, too.

    Each part between two `*` is looked for behind the one before it, and the first place is as good as any: the `*` in
    front of it takes more where it is later, and the one behind it less. So no place is looked at again for a part.
    """

    __slots__ = ("_ends", "_length", "_parts", "has")

    def __init__(self, glob: str) -> None:
        parts: list[list[str]] = [["/"]]
        for piece in _PIECE.findall(glob):
            if piece == "*":
                parts.append([])
            else:
                parts[-1].append(piece)
        # A text that each path has that it fits: whether one has it is seen sooner than whether all of it fits.
        self.has = max(("".join(part) for part in parts if _is_plain(part)), key=len, default="")
        *parts, last = parts
        self._parts = [(_finding(part), len(part)) for part in parts if part]
        self._ends, self._length = _ending(last), len(last)

    def fits(self, path: str) -> bool:
        """Whether the end of *path* is as the glob says; it begins with a slash that the repository does not have."""
        end = len(path) - self._length
        if end < 0 or not self._ends(path, end):
            return False
        at = 0
        for find, length in self._parts:
            at = find(path, at, end)
            if at < 0:
                return False
            at += length
        return True


@cache
def image_glob(glob: str) -> ImageGlob:
    """Return the glob that is written so."""
    return ImageGlob(glob)


def _is_plain(part: list[str]) -> bool:
    return "?" not in part and max(map(len, part), default=0) <= 1


def _finding(part: list[str]) -> _Find:
    """Look for a part, each piece of which is for one character."""
    text = "".join(part)
    if _is_plain(part):
        return lambda path, at, end: path.find(text, at, end)
    search = re.compile(translate(f"{text}*")).search  # the `*` takes what is behind it

    def find(path: str, at: int, end: int) -> int:
        match = search(path, at, end)
        return -1 if match is None else match.start()

    return find


def _ending(part: list[str]) -> Callable[[str, int], object]:
    text = "".join(part)
    return (lambda path, _: path.endswith(text)) if _is_plain(part) else re.compile(translate(text)).match
