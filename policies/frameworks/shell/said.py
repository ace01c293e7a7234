"""The words of a text that stand behind each other, and whether they do for certain."""

from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_COPY, CHARACTERS_OF_STEP
from policies.frameworks.shell.plain_words import BETWEEN, POSSIBLE

_STEPS_OF_RUN: Final = 3  # of words that stand behind each other, beside those of their characters


class Said:
    """What is said of one text, each once."""

    __slots__ = ("words",)

    def __init__(self) -> None:
        """Begin with nothing."""
        self.words: dict[str, bool] = {}

    def add(self, words: str, *, is_certain: bool) -> None:
        """Take note of *words*; not *is_certain*: they are one of several that may stand there, or a tool's."""
        self.words[words] = is_certain or self.words.get(words, False)

    def update(self, other: "Said") -> None:
        """Take over what is said of a text inside this one."""
        for words, is_certain in other.words.items():
            self.add(words, is_certain=is_certain)

    def text(self) -> str:
        """Write all of it as one text, in which what is certain stands before what is possible."""
        certain = [words for words, is_certain in self.words.items() if is_certain]
        possible = [words for words, is_certain in self.words.items() if not is_certain]
        return f" {BETWEEN} ".join(["", *certain, *([POSSIBLE, *possible] if possible else ()), ""])


class Heard:
    """What was said of which text of a container: settings are looked for in it once."""

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        """Begin with nothing."""
        self._pairs: set[tuple[str, str]] = set()

    def steps(self, text: str, words: str) -> int:
        """Count the steps for *words* that are said of a *text*; "" is the command line, of which it is for nobody."""
        is_new = text != "" and (text, words) not in self._pairs
        if is_new:
            self._pairs.add((text, words))
        return _STEPS_OF_RUN + len(words) // (CHARACTERS_OF_STEP if is_new else CHARACTERS_OF_COPY)
