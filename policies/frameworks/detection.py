"""Which framework runs in a container: by annotation, by the image's repository, or by the program it starts."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from itertools import chain, dropwhile, islice
from operator import itemgetter
from typing import NamedTuple

from policies.frameworks.command_line import SHELLS, CommandLine
from policies.frameworks.framework import Framework
from policies.frameworks.image_glob import ImageGlob, image_glob
from policies.frameworks.option_pattern import Names, Words
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell.tools import runs_another, tool
from policies.frameworks.taken_variables import KEYWORDS
from policies.pod import Container

_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", re.ASCII)
_FIRST_YEAR = 10  # from this number on a tag counts by years and months
_LONGEST_IMAGE = 512  # characters; an image reference is at most 255 + 128 + 72
_MOST_KEPT = 1024  # images of a cluster, which come again and again
_MOST_BEFORE = 32  # words of a command line that are looked at for what starts a program
_MOST_MENTIONS = 16  # of a program's last word in one text
_MOST_OF_OTHERS = 16  # mentions, of a program that does not take what would be added
_MOST_MENTIONED = 24  # programs of a command line, by their last words
_LONGEST_BEFORE = 96  # characters in front of it
_BEHIND_WORD = " \t\n;&|()`'\""
_BEFORE_WORD = r"\s;&|(){}`'\"/"
_WORD_BACKWARDS = re.compile(rf"\s+([^{_BEFORE_WORD}]*)")
_FEW_FRONTS = 3  # words in front of one that several programs end in: to go through them takes less than to look for it
_ANYWHERE = ("", "python")  # the word in front of a program of one word, and what options of its own may stand behind
_NAMING = ("-v", "-V")  # of `command`
_SEPARATOR = re.compile(r"[;&|(){}`]")  # beside the end of a line
_WILDCARDS = frozenset("*?[")


class _Ranked(NamedTuple):
    """A program, of which the first counts that is started."""

    rank: int
    first: str  # of its words; "" if it has one alone
    program: str
    framework: Framework


class Catalogue:
    """The frameworks that are known, with their images, programs and settings ready for look-up."""

    def __init__(self, built_in: Iterable[Framework], additions: Iterable[Framework]) -> None:
        """Join the two; an addition replaces the built-in entry of its name and is looked at first."""
        added = {framework.name: framework for framework in additions}
        self.frameworks: dict[str, Framework] = added | {
            framework.name: framework for framework in built_in if framework.name not in added
        }
        self.settings = SettingIndex(self.frameworks.values())
        self._images: dict[str, tuple[int, Framework]] = {}  # by the end of their repository; the first of two counts
        self._globs: list[tuple[str, ImageGlob, tuple[int, Framework]]] = []
        self._programs: dict[str, list[tuple[str, Framework]]] = {}  # by their first word
        for rank, framework in enumerate(self.frameworks.values()):
            for image in framework.images:
                if _WILDCARDS.isdisjoint(image):
                    self._images.setdefault(image, (rank, framework))
                else:
                    glob = image_glob(image)
                    self._globs.append((glob.has, glob, (rank, framework)))
            for program in framework.programs:
                self._programs.setdefault(program.partition(" ")[0], []).append((program, framework))
        self._by_last_word: dict[str, dict[str, list[_Ranked]]] = {}  # and by the one in front of it
        self._ranks: dict[str, int] = {}  # of the first program with a last word
        for rank, (program, framework) in enumerate(chain.from_iterable(self._programs.values())):
            front, _, last = program.rpartition(" ")
            self._ranks.setdefault(last, rank)
            by_front = self._by_last_word.setdefault(last, {})
            by_front.setdefault(_word_in_front(f"{front} "), []).append(
                _Ranked(rank, front.partition(" ")[0], program, framework)
            )
        every = chain.from_iterable(chain.from_iterable(one.values()) for one in self._by_last_word.values())
        self._beginnings = Names({one.first or one.program for one in every})
        self._last_words = Words(self._by_last_word, before=_BEFORE_WORD, behind=_BEHIND_WORD)
        self._by_image: dict[str, Framework | None] = {}
        self._most_steps = max((image.count("/") + 1 for image in self._images), default=0)

    def by_image(self, container: Container) -> Framework | None:
        """Recognise the framework by the image's repository."""
        image = container.image or ""
        if image in self._by_image:
            return self._by_image[image]
        if len(self._by_image) >= _MOST_KEPT:  # hostile images are kept from filling the memory
            self._by_image.clear()
        found = self._recognised(repository(image))
        if len(image) <= _LONGEST_IMAGE:
            self._by_image[image] = found
        return found

    def _recognised(self, name: str) -> Framework | None:
        path = f"/{name}"
        found = [ranked for has, glob, ranked in self._globs if has in path and glob.fits(path)]
        at = len(name)
        for _ in range(self._most_steps):  # the last step of the path, the last two, and so on
            if at <= 0:
                break
            at = name.rfind("/", 0, at)
            if (ranked := self._images.get(name[at + 1 :])) is not None:
                found.append(ranked)
        return min(found, key=itemgetter(0))[1] if found else None

    def by_program(self, line: CommandLine) -> Framework | None:
        """Recognise the framework by the program that a command line starts."""
        for words in line.started:
            for program, framework in self._programs.get(words[0], ()):
                if line.starts(program):
                    return framework
        return None

    def within(self, line: CommandLine, count: Callable[[int], None]) -> Framework | None:
        """
        Recognise the framework that a command line starts by a launcher or in a shell's text.

        *count* is told how many mentions of programs are looked at, before they are.
        """
        texts = dict.fromkeys(_texts(line))
        together = "\n".join(texts)
        if not self._beginnings.any_in(together):  # as in most texts
            return None
        words = self._first(self._last_words.found_in(together))  # many programs end in the same, such as `serve`
        mentions = {last: [*_mentions(last, texts)] for last in words}
        count(sum(map(len, mentions.values())))
        each = ((self._by_last_word[last], before) for last, several in mentions.items() for before in several)
        looked_at = ((one, before) for by_front, before in each for one in _ending(by_front, before))
        in_order = sorted(looked_at, key=lambda one: one[0].rank)
        return next((one.framework for one, before in in_order if _starts(one.program, before)), None)

    def _first(self, words: set[str]) -> Iterable[str]:
        """Put the last words of programs in order, and leave out those of the last ones where there are too many."""
        return nsmallest(_MOST_MENTIONED, words, self._ranks.__getitem__)

    def other_program(self, framework: Framework, line: CommandLine) -> str:
        """Name the program of `other_programs` that a command line starts, in whatever way; "" if it starts none."""
        texts = dict.fromkeys(_texts(line))
        for one in framework.other_programs:
            mentions = islice(_mentions(one.rpartition(" ")[2], texts), _MOST_OF_OTHERS)
            if line.starts(one) or any(_starts(one, before) for before in mentions):
                return one
        return ""

    def version_of(self, framework: Framework, container: Container) -> tuple[int, int] | None:
        """Read the framework's major and minor version from the image's tag, where the tag says it."""
        path = f"/{repository(container.image or '')}"
        if any(image_glob(glob).fits(path) for glob in framework.version_images):
            known = version(container.image or "")
            return known if known is None or known[0] < _FIRST_YEAR else None
        return None


def _texts(line: CommandLine) -> list[str]:
    """List the texts of a command line that may start a program: the words that a shell gets, or all in one."""
    words = line.words[:_MOST_BEFORE]
    if not words or words[0].startswith("-"):  # of an entry point that nobody knows
        return []
    has_shell = not SHELLS.isdisjoint(one.rpartition("/")[2] for one in words)
    return [one.replace("\\\n", " ") for one in words] if has_shell else [_in_one(words)]


def _in_one(words: Sequence[str]) -> str:
    """Write the words of a command line that are no texts as one."""
    return " ".join([one for one in words if " " not in one])


def _mentions(word: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield what stands before a word in texts, those that are for a shell before others; some of each text."""
    naming = [text for text in texts if word in text]
    if len(naming) > 1:
        naming.sort(key=lambda text: " " not in text)
    return chain.from_iterable(_mentions_in(text, word) for text in naming)


def _mentions_in(text: str, word: str) -> list[str]:
    places = (match.start() for match in islice(_standing(word).finditer(text), _MOST_MENTIONS))
    return [text[max(0, at - _LONGEST_BEFORE) : at] for at in places]


@cache
def _standing(word: str) -> re.Pattern[str]:
    """Match a word that is no part of another, such as `serve` and not `server`."""
    written = re.escape(word)  # first, because the engine skips to it
    return re.compile(rf"{written}(?<![^{_BEFORE_WORD}]{written})(?=[{_BEHIND_WORD}]|\Z)")


def _ending(by_front: Mapping[str, Sequence[_Ranked]], before: str) -> list[_Ranked]:
    """List the programs of one last word that what stands *before* it may begin."""
    fronts = by_front if len(by_front) <= _FEW_FRONTS else (_word_in_front(before), *_ANYWHERE)
    return [one for front in fronts for one in by_front.get(front, ()) if one.first in before]


def _word_in_front(before: str) -> str:
    """Return the last word of what stands *before* another; "" if no space is between them."""
    match = _WORD_BACKWARDS.match(before[::-1])
    return match[1][::-1] if match else ""


def _starts(program: str, before: str) -> bool:
    """
    Whether a command starts *program*, itself or by what is no tool: `uv run`, `exec nohup`.

    *before* is what stands before the program's last word.
    """
    match = _leading(program).search(before)
    return match is not None and not _is_named(before[: match.start()])


def _is_named(before: str) -> bool:
    """Whether what stands before a program only names it: a tool, `command -v`, a comment, a variable."""
    command = _SEPARATOR.split(before[before.rfind("\n") + 1 :])[-1]
    words = command.split()
    directory = words.pop() if words and not command[-1].isspace() else ""
    words = list(dropwhile(KEYWORDS.__contains__, words))
    if "=" in directory or ("#" in command and any(one.startswith("#") for one in words)):
        return True
    if len(words) > 1 and words[0] == "command" and words[1].startswith(_NAMING):
        return True
    return bool(words) and bool(tool(words[0])) and not runs_another(words)


@cache
def _leading(program: str) -> re.Pattern[str]:
    """Match the words of a program in front of its last one, with options of python's own."""
    *words, _ = program.split()
    python = r"python[0-9.]*(?:\s+-(?!m\b)\w+(?:\s+ignore)?)*"
    written = "".join(rf"{python if one == 'python' else re.escape(one)}\s+" for one in words)
    return re.compile(rf"(?<![^{_BEFORE_WORD}]){written}\Z")


def repository(image: str) -> str:
    """Cut tag and digest off an image reference: `a.b:5000/c/d:1.2@sha256:…` is `a.b:5000/c/d`; "" if too long."""
    name = image.partition("@")[0] if len(image) <= _LONGEST_IMAGE else ""
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def version(image: str) -> tuple[int, int] | None:
    """Read major and minor from an image's tag: `2.10.0-cuda13.0-runtime` is (2, 10); None if it says neither."""
    last = image[:_LONGEST_IMAGE].partition("@")[0].rpartition("/")[2]
    match = _VERSION.match(last.partition(":")[2])
    return (int(match[1]), int(match[2])) if match else None
