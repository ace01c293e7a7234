"""Which framework runs in a container: by annotation, by the image's repository, or by the program it starts."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import cache

from policies.frameworks.framework import Framework
from policies.pod import Container

_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", re.ASCII)
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"})
# Programs that run what follows their options, and what their own words look like.
_WRAPPERS = frozenset(
    {"tini", "dumb-init", "catatonit", "env", "exec", "nice", "nohup", "numactl", "setsid", "timeout"}
)
_WRAPPERS_OWN = re.compile(r"-|[A-Za-z_][A-Za-z0-9_]*=|[0-9]", re.ASCII)
_PYTHON = re.compile(r"(?:/[^\s]*/)?python[0-9.]*", re.ASCII)
_PYTHON_SWITCHES = ("-u", "-O", "-OO", "-B", "-E", "-s", "-S", "-I", "-X", "-W")
_LONGEST_IMAGE = 1024  # characters; an image reference is at most 255 + 128 + 72


class Catalogue:
    """The frameworks that are known, with their images and programs ready for look-up."""

    def __init__(self, built_in: Iterable[Framework], additions: Iterable[Framework]) -> None:
        """Join the two; an addition replaces the built-in entry of its name and is looked at first."""
        added = {framework.name: framework for framework in additions}
        self.frameworks: dict[str, Framework] = added | {
            framework.name: framework for framework in built_in if framework.name not in added
        }
        self._images = [
            (_image_pattern(glob), framework) for framework in self.frameworks.values() for glob in framework.images
        ]
        self._programs = [
            (tuple(program.split()), framework)
            for framework in self.frameworks.values()
            for program in framework.programs
        ]
        spelled = [
            (spelling, framework)
            for framework in self.frameworks.values()
            if framework.memory
            for spelling in framework.memory.spellings
        ]
        self._variables = {one.variable: framework for one, framework in spelled if one.variable}
        self._arguments = [(one.argument.replace("_", "-"), framework) for one, framework in spelled if one.argument]
        self._by_repository: dict[str, Framework | None] = {}

    def detect(self, container: Container) -> Framework | None:
        """Recognise the framework by image, else by program."""
        return self._by_image(repository(container.image or "")) or self._by_program(
            [*(container.command or ()), *(container.args or ())]
        )

    def with_setting(self, container: Container) -> list[Framework]:
        """List the frameworks one of whose memory settings seems to stand in the container."""
        found = [self._variables[one.name] for one in container.env or () if one.name in self._variables]
        line = " ".join((*(container.command or ()), *(container.args or ()))).replace("_", "-")
        if line:
            found += [framework for argument, framework in self._arguments if argument.lstrip("-") in line]
        return found

    def version_of(self, framework: Framework, container: Container) -> tuple[int, int] | None:
        """Read the framework's major and minor version from the image's tag, where the tag says it."""
        name = repository(container.image or "")
        if any(_image_pattern(glob).fullmatch(name) for glob in framework.version_images):
            return version(container.image or "")
        return None

    def is_image_of(self, framework: Framework, container: Container) -> bool:
        """Whether the container's image is one of the framework's own."""
        return self._by_image(repository(container.image or "")) is framework

    def _by_image(self, name: str) -> Framework | None:
        # The images of a cluster are few and come again and again; hostile ones are kept from filling the memory.
        if name not in self._by_repository:
            if len(self._by_repository) >= 4096:  # noqa: PLR2004 - about 1 MiB
                self._by_repository.clear()
            found = (framework for pattern, framework in self._images if pattern.fullmatch(name))
            self._by_repository[name] = next(found, None)
        return self._by_repository[name]

    def _by_program(self, line: Sequence[str]) -> Framework | None:
        return next((framework for words, framework in self._programs if _starts(line, words)), None)


@cache
def _image_pattern(glob: str) -> re.Pattern[str]:
    """Match the end of a repository, from any slash on."""
    return re.compile(f"(?:.*/)?(?:{translate(glob)})", re.DOTALL)


def basename(path: str) -> str:
    """Cut the directories off a program's path."""
    return path.rpartition("/")[2]


def repository(image: str) -> str:
    """Cut tag and digest off an image reference: `a.b:5000/c/d:1.2@sha256:…` is `a.b:5000/c/d`."""
    name = image[:_LONGEST_IMAGE].partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def version(image: str) -> tuple[int, int] | None:
    """Read major and minor from an image's tag: `2.10.0-cuda13.0-runtime` is (2, 10); None if it says neither."""
    last = image[:_LONGEST_IMAGE].partition("@")[0].rpartition("/")[2]
    match = _VERSION.match(last.partition(":")[2])
    return (int(match[1]), int(match[2])) if match else None


def runs_through_shell(line: Sequence[str]) -> bool:
    """Whether a shell runs the command line: it takes appended arguments for its own."""
    if not line or line[0].startswith("-"):
        return False
    line = _unwrapped(line)
    return bool(line) and basename(line[0]) in _SHELLS


def ends_options(line: Sequence[str]) -> bool:
    """Whether the program's options end with --, so that what is appended is none."""
    return "--" in _unwrapped(line)


def starts_one_of(line: Sequence[str], programs: Iterable[str]) -> bool:
    """Whether the command line starts one of *programs*, so that an argument appended to it reaches the program."""
    return any(_starts(line, tuple(program.split())) for program in programs)


def _starts(line: Sequence[str], words: tuple[str, ...]) -> bool:
    line = _unwrapped(line)
    if not line:
        return False
    if words[0] == "python":
        return bool(_PYTHON.fullmatch(line[0])) and tuple(_python_words(line)[: len(words)]) == words
    if _PYTHON.fullmatch(line[0]):
        line = _without_python_options(line)
    return bool(line) and (basename(line[0]), *line[1 : len(words)]) == words


def _unwrapped(line: Sequence[str]) -> Sequence[str]:
    """What a command line runs in the end, behind `tini --`, `env NAME=value`, `timeout 10` and their like."""
    rest = list(line)
    while rest and basename(rest[0]) in _WRAPPERS:
        rest.pop(0)
        while rest and _WRAPPERS_OWN.match(rest[0]):
            if rest.pop(0) == "--":
                break
    return rest


def _python_words(line: Sequence[str]) -> list[str]:
    return ["python", *_without_python_options(line)]


def _without_python_options(line: Sequence[str]) -> list[str]:
    """What python runs: `-m module …` or `script …`, without switches such as `-u`."""
    rest = list(line[1:])
    while rest and rest[0] in _PYTHON_SWITCHES:
        if rest.pop(0) in ("-X", "-W") and rest:
            rest.pop(0)
    return rest
