"""Whether one memory setting of the user's own is within the share."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal, TypeVar

import msgspec

from policies.changes import Change
from policies.errors import quoted
from policies.frameworks.budget import Budget, Judged, Wanted
from policies.frameworks.expansion import A_NUMBER, KINDS, TOLD, UNREAD
from policies.frameworks.framework import Framework, Spelling
from policies.frameworks.settings import Option, Setting

# within: at most the share. above: more, or no number. boundless: so little that frameworks take it for no limit.
# unread: admission cannot tell. any: nor can it, and whatever it is, the framework takes no more than its share.
# bytes: it cannot be compared with a part of a GPU that is not known yet.
# unexpanded: a reference that the kubelet leaves as it is.
# overriding: with it the framework takes memory without regard to its share.
# taken: a variable of the container that the command line keeps from the program, by the value.
# replaced: one of several settings that the command line sets to others alone.
Verdict = Judged | Literal["unread", "any", "overriding", "taken", "replaced"]
KEPT: Final = frozenset({"within", "any"})
MISSED: Final = frozenset({"taken", "replaced"})  # what the program does not get
_LOWERED: Final = frozenset({"above", "boundless", "unexpanded", "unread"})


class OwnValue(msgspec.Struct, frozen=True, gc=False):
    """One memory setting that the user has made."""

    verdict: Verdict
    name: str  # the argument or the variable, or what may be one
    value: str = ""  # printable, shortened
    framework: Framework | None = None  # None: which one cannot be told
    change: Change | None = None  # what brings it to the share; None where nothing can be replaced
    is_certain: bool = True  # and not one of several values that it may have, or a tool's word
    is_empty: bool = False  # a variable is set to nothing
    is_read: bool = True  # by the program that runs, as far as admission can tell
    fix: str = ""  # what to do about it, where that is nothing usual
    variable: str = ""  # in whose text it stands, where that is no setting itself
    takes_all: bool = False  # it leaves nothing of the share to a framework that does not start with all of it

    @property
    def is_to_lower(self) -> bool:
        """Whether it is brought to the share where it stands, if it can be: it is known whose it is."""
        return self.framework is not None and self.verdict in _LOWERED


_MARK = re.compile(f"{UNREAD}[{KINDS}]?")
_WHOLE = re.compile(f"{A_NUMBER}(?:[KMGTkmgt]i?)?")  # of MiB, say, or of devices
_FEWEST_BLOCKS: Final = 100  # of LMDeploy's cache, that are more than another program's GPUs
_LARGE = re.compile(r"(?:\d_?){4}|\d[kmgt]", re.IGNORECASE)  # of bytes or blocks: four digits and more, or a unit
_HOST = re.compile(r"://[^\s/'\"]*+")  # such as the http://vllm:8000 of a probe
_LONGEST_SHOWN = 256  # characters that are looked at
Candidate = TypeVar("Candidate", Setting, Option)


class Judge:
    """Holds the settings of one container against its budget."""

    def __init__(
        self, budget: Budget, recognised: Collection[Framework], names: Sequence[str], count: Callable[[], None]
    ) -> None:
        """
        Judge under *budget*.

        *recognised* are the frameworks that the container is known to run, and *names* what stands in it: image, words.
        *count* counts each thing to judge, and raises DeniedError if there is more than in any real pod.
        """
        self.count = count
        self._budget = budget
        self._names = names
        self._may_run: dict[str, bool] = {}
        self._recognised = {framework.name for framework in recognised}
        self._wanted: dict[str, Wanted] = {}

    def wanted(self, framework: Framework) -> Wanted:
        """Return what *framework* should be told."""
        if framework.name not in self._wanted:
            assert framework.memory is not None  # noqa: S101 - those without are not in the index
            self._wanted[framework.name] = Wanted(framework.memory, self._budget)
        return self._wanted[framework.name]

    def text(self, setting: Setting) -> str:
        """Write the value that is within the share."""
        assert isinstance(setting.written, Spelling)  # noqa: S101 - the others have none
        return self.wanted(setting.framework).text(setting.written)

    def likeliest(self, settings: Sequence[Candidate]) -> Candidate:
        """Choose among the settings that are written alike: that of a framework which runs here, else the first."""
        return next(iter(self.running(settings)), settings[0])

    def running(self, settings: Sequence[Candidate]) -> list[Candidate]:
        """List those of frameworks which run here."""
        return [one for one in settings if one.framework.name in self._recognised]

    def is_certain(self, option: Option) -> bool:
        """Whether the option is the setting's: an abbreviation may be another program's option."""
        is_own = option.is_in_full and not option.setting.is_general
        return is_own or option.setting.is_specific or option.framework.name in self._recognised

    def may_be(self, option: Option, number: str) -> bool:
        """
        Whether a program may take an abbreviation that is not certain for the setting, with *number* as its fraction.

        Others' options begin alike: `--gpu 1` is the second GPU, `--mem 1` a gibibyte. No framework that takes
        abbreviations starts with all of a GPU, so 1 counts only where something in the container has its name, and so
        does a whole number that cannot be read.
        """
        if _WHOLE.fullmatch(number):
            return self.has_name_of(option.framework)
        if _is_computed(number):
            return True
        try:
            value = float(number)
        except ValueError:
            return False
        return 0 < value < 1 or (value == 1 and self.has_name_of(option.framework))

    def may_start_with(self, option: Option, number: str) -> bool:
        """Whether a framework may start with *number* by an abbreviation: above 1 it is a count of blocks."""
        if _is_computed(number) or self.may_be(option, number):
            return True
        try:
            return float(number) >= _FEWEST_BLOCKS
        except ValueError:
            return False

    @staticmethod
    def may_override(value: str) -> bool:
        """Whether a program may take an abbreviation that is not certain for an override: a count of GPUs is none."""
        return _is_computed(value) or _LARGE.search(value) is not None

    def has_name_of(self, framework: Framework) -> bool:
        """Whether the framework's name stands in the image or on the command line, and not as a host that it calls."""
        if framework.name not in self._may_run:
            self._may_run[framework.name] = any(
                framework.name in one and framework.name in _HOST.sub("", one) for one in self._names
            )
        return self._may_run[framework.name]

    def verdict(self, framework: Framework, spelling: Spelling, number: str) -> Verdict:
        """Judge the *number* in a value."""
        wanted = self.wanted(framework)
        if UNREAD in number:
            return "within" if number == TOLD and wanted.may_be_told(spelling) else self.unread(framework, number)
        return wanted.verdict(spelling, number)

    def verdict_of_all(self, framework: Framework, spelling: Spelling, value: str) -> Verdict:
        """Judge a whole *value*, which the framework may read in another form as well."""
        number = number_in(spelling, value)
        if number is not None:
            return self.verdict(framework, spelling, number)
        if UNREAD in value:
            return self.unread(framework, value)
        return self.wanted(framework).verdict_of_other(spelling, value)

    def unread(self, framework: Framework, value: str) -> Verdict:
        """Judge a *value* that cannot be read, or not all of it."""
        return self.wanted(framework).verdict_of_unread(is_told=value == TOLD)

    def takes_all(self, framework: Framework, spelling: Spelling, number: str) -> bool:
        """Whether the *number* in a value is all of the share, and the framework does not start with that."""
        return self.wanted(framework).takes_all(spelling, None if number == TOLD else number)

    def keeps(self, verdict: Verdict) -> bool:
        """Whether a value stays as it is: bytes do where something else holds the container to its share."""
        return verdict in KEPT or (verdict == "bytes" and self._budget.is_held)


def _is_computed(value: str) -> bool:
    """Whether it has a reference; a name that the pod does not set may be a Service's, whose port is a number."""
    return UNREAD in value or "$(" in value


def number_in(spelling: Spelling, text: str) -> str | None:
    """Take the number out of a value written as *spelling* does; None if it is written otherwise."""
    before, after = spelling.around
    text = text.strip()
    if len(text) < len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
        return None
    return text[len(before) : len(text) - len(after)]


def shown(value: str) -> str:
    """Write a value for messages; what cannot be read is a reference."""
    return "a reference" if value.startswith(UNREAD) else quoted(_MARK.sub("...", value[:_LONGEST_SHOWN]))
