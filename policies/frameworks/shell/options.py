"""What the words before a program, and the options of a shell, say of where it gets its words and variables."""

from collections.abc import Sequence
from typing import Final

_OWN_ENVIRONMENT: Final = frozenset({"doas", "runuser", "su", "sudo"})  # which start a program without all variables
_FILES_OF_INPUT: Final = ("/dev/fd/", "/dev/stdin", "/proc/")
_LONG_WITH_WORD: Final = frozenset({"--rcfile", "--init-file"})


def loses_environment(wrappers: Sequence[str]) -> bool:
    """Whether the program behind *wrappers* and their words may not have all variables of the container."""
    names = {one.rpartition("/")[2] for one in wrappers}
    return not names.isdisjoint(_OWN_ENVIRONMENT) or ("env" in names and any(one.startswith("-") for one in wrappers))


def takes_words(wrappers: Sequence[str]) -> bool:
    """Whether the program gets words from elsewhere."""
    return any(one.rpartition("/")[2] == "xargs" for one in wrappers)


def takes_words_of_file(wrappers: Sequence[str]) -> bool:
    """Whether these words are a file's, and not of what else a text runs."""
    return any(one.startswith(("-a", "--arg-file")) for one in wrappers)


def is_input(path: str) -> bool:
    """Whether a script at *path* is what a shell is given with a here-document or a pipe."""
    return path.startswith(_FILES_OF_INPUT)


def behind_options(words: Sequence[str]) -> tuple[int, bool]:
    """Return where the options of a shell end, and whether a text follows."""
    at, has_text = 0, False
    while at < len(words) and words[at].startswith(("-", "+")) and words[at] != "--":
        option = words[at]
        is_long = option.startswith("--")
        has_text |= not is_long and "c" in option
        at += 2 if option in _LONG_WITH_WORD or (not is_long and option[-1] in "oO") else 1
    return at, has_text
