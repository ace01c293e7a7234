"""How much one pod may ask of admission: references, settings, and steps in which its texts are read."""

from typing import Final

import msgspec

from policies.denial import DeniedError

MOST_EXPANDED: Final = 96 * 1024  # characters that references may make in one pod
MOST_REFERENCES: Final = 2048  # $(NAME), and $NAME in a shell's text, in one pod
MOST_MENTIONS: Final = 256  # of frameworks' programs in texts that may start them, in one pod
MOST_SETTINGS: Final = 128  # of frameworks' memory, in one pod
MOST_STEPS: Final = 8300  # of about a microsecond, in which shells' texts are read, in one pod
MOST_COPIED: Final = 256 * 1024  # characters of values that become words as they are, at less cost, in one pod
LEAST_STEPS: Final = 800  # in a large one, the rest of which takes time beside
MOST_REWRITTEN: Final = 256 * 1024  # bytes of JSON that the pod's own texts take in the answer, beside what is lowered

CHARACTERS_OF_STEP: Final = 32  # that are made, or that patterns look at
CHARACTERS_OF_COPY: Final = 256  # that are looked at and taken over, but not one by one


class UnreadableError(Exception):
    """A shell's text is not of the grammar that is read, or it would take too long."""


class Allowance:
    """
    What one pod may still have: references, the text that they make, memory settings, and text that comes back.

    And how long its shells' texts are read, by what is made of them: commands, words and characters, not time.
    """

    __slots__ = ("_characters", "_copied", "_mentions", "_references", "_rewritten_bytes", "_settings", "_steps")

    def __init__(self, steps_beside: int = 0) -> None:
        """Begin with a pod the rest of which, beside shells' texts, takes as long as so many steps."""
        self._characters = MOST_EXPANDED
        self._copied = MOST_COPIED
        self._mentions = MOST_MENTIONS
        self._references = MOST_REFERENCES
        self._rewritten_bytes = MOST_REWRITTEN
        self._settings = MOST_SETTINGS
        self._steps = max(MOST_STEPS - steps_beside, LEAST_STEPS)

    def read(self, references: int) -> None:
        """
        Count *references* that a text may have.

        Raises:
            DeniedError: If there are more than in any real pod.
        """
        self._references -= references
        if self._references < 0:
            what = f"The pod has more than {MOST_REFERENCES} dollar signs in its words and variables"
            raise DeniedError("PodTooLarge", what, "Write what they refer to, or put it into a file")

    def mention(self, times: int) -> None:
        """
        Count *times* that texts may name a program of a framework.

        Raises:
            DeniedError: If they are more than in any real pod.
        """
        self._mentions -= times
        if self._mentions < 0:
            what = f"The pod's commands name programs of frameworks more than {MOST_MENTIONS} times"
            raise DeniedError("PodTooLarge", what, "Start each of them by its own words, or put its script into a file")

    def count_setting(self) -> None:
        """
        Count what may be a memory setting of a framework.

        Raises:
            DeniedError: If there are more than in any real pod.
        """
        self._settings -= 1
        self.check_settings(MOST_SETTINGS - self._settings)

    def check_settings(self, settings: int) -> None:
        """
        Look at how many *settings* there may be, before each of them is looked at.

        Raises:
            DeniedError: If they are more than in any real pod.
        """
        if settings > MOST_SETTINGS:
            what = f"The pod makes memory settings of frameworks more than {MOST_SETTINGS} times"
            raise DeniedError("PodTooLarge", what, "Make each of them once")

    def work(self, steps: int = 1) -> None:
        """
        Count steps in which shells' texts are read, one for each token.

        Raises:
            UnreadableError: If they are more than any real pod takes.
        """
        self._steps -= steps
        if self._steps < 0:
            raise UnreadableError

    def copy(self, characters: int) -> None:
        """Count *characters* that are taken over as they are; raises UnreadableError as `work` does."""
        cheap = min(characters, self._copied)
        self._copied -= cheap
        self.work(cheap // CHARACTERS_OF_COPY + (characters - cheap) // CHARACTERS_OF_STEP)

    @property
    def is_spent(self) -> bool:
        """Whether shells' texts are left that could not be read for their length."""
        return self._steps < 0

    def write(self, value: str) -> str:
        """
        Count what a reference makes.

        Raises:
            DeniedError: If it is more than any real pod has.
        """
        self._characters -= len(value)
        if self._characters < 0:
            what = f"The references in the pod's words and variables make more than {MOST_EXPANDED} characters"
            raise DeniedError("PodTooLarge", what, "Write fewer of them")
        return value

    def rewrite(self, text: str) -> str:
        """
        Count a text of the pod's own that is written anew, so that all of it is in the answer.

        Raises:
            DeniedError: If it is more than any real pod has.
        """
        self._rewritten_bytes -= len(msgspec.json.encode(text))
        if self._rewritten_bytes < 0:
            what = f"More than {MOST_REWRITTEN // 1024} KiB of its arguments and variables would have to be changed"
            raise DeniedError("PodTooLarge", what, "Set the share's fraction in shorter ones")
        return text
