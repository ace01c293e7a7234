"""Which variables of the container a program is started without, `unset NAME`, `env -i`, `sudo`, or with more words."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, dropwhile, pairwise
from typing import Final, NamedTuple

from policies.frameworks.command_line import unwrapped
from policies.frameworks.expansion import UNREAD
from policies.frameworks.shell.options import KEEPING, LOGIN, RESETTING, takes_words
from policies.frameworks.shell.tools import runs_another, tool

# Programs before a program, as far as they take variables away, and their options that do.
_STARTING: Final = {
    "doas": re.compile("doas"),
    "env": re.compile(r"-|-[0v]*i[0v]*|--i(?!gnore-s)[a-z-]*"),  # busybox has no other that begins so
    "exec": re.compile(r"-[acl]*c[acl]*"),
    "runuser": LOGIN,
    "setpriv": RESETTING,
    "su": LOGIN,
    "sudo": re.compile("sudo"),
}
# Commands of shells that take variables from all that is started behind them.
_UNSETTING: Final = {
    "an array": "an array",  # which bash exports to nobody
    "declare": "declare +x",
    "export -n": "export -n",
    "set -e": "set -e",
    "typeset": "typeset +x",
    "unset": "unset",
    "unsetenv": "unsetenv",
}
UNSETTING: Final = ("-u", "--unset")  # options of `env` that take a name alone
_ASSIGNING = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_ERASING: Final = re.compile(r"-[a-z]*e[a-z]*|--erase")  # of fish's `set`
_WITH_SHELL: Final = {  # where they name no program
    "doas": re.compile("-s"),
    "runuser": re.compile(""),
    "su": re.compile(""),
    "sudo": re.compile(r"-[A-Za-z]*[is][A-Za-z]*|--lo[gin]*|--sh[el]*"),
}
KEYWORDS: Final = frozenset({"!", "and", "begin", "do", "elif", "else", "if", "not", "or", "then", "until", "while"})
_COMMAND = re.compile(r"(?>[^;&|\n]+|(?<=>)\|)++")
_REDIRECTION = re.compile(r"(?<![0-9])[0-9]*+[<>]++\|?[ \t]*[^\s<>]*|\A\s*[0-9]+(?=\s)")  # and what is left of 2>&1
_QUOTING: Final = ("\\\n", "\\", "'", '"')
_STEPS_OF_COMMAND: Final = 10
_STEPS_OF_WORD: Final = 2
_SERVICES: Final = frozenset(
    (
        *("containerd", "cron", "crond", "dockerd", "dpkg", "iptables", "locale-gen", "make", "modprobe", "mysql"),
        *("nginx", "nvidia-persistenced", "pg_ctl", "psql", "redis-server", "rpm", "rsync", "rsyslogd", "service"),
        *("sshd", "systemctl", "tailscaled", "tar", "update-alternatives", "update-ca-certificates"),
    )
)
_SERVING: Final = {  # by their first words alone, since others start a program: `npm start`, `snap run`
    "corepack": ("disable", "enable", "install", "prepare"),
    "npm": ("cache", "ci", "config", "i", "install"),
    "snap": ("install", "refresh", "remove"),
}
_NAMES: Final = (*_STARTING, "declare", "set", "typeset", "unset", "unsetenv", "xargs")
# Each is looked for by itself, because the engine skips to its first characters; what it begins is seen behind it.
_IN_TEXTS: Final = {one: re.compile(rf"{one}(?<![\w.-]{one})(?!\S)", re.ASCII) for one in _NAMES}
_IN_PLAIN_WORDS: Final = {one: re.compile(rf"{one}(?<![^\s/;&|<>]{one})(?![^\s;&|<>])") for one in _NAMES}
# Those in which another one stands are looked for where that is: `su` in `sudo`, `set` in `unset`.
_SHORTEST: Final = {
    short: [one for one in _NAMES if short in one]
    for short in _NAMES
    if not any(other in short for other in _NAMES if other != short)
}


def may_take(words: Sequence[str]) -> bool:
    """Whether *words* before a program may take variables from it."""
    return any(one.rpartition("/")[2] in _STARTING or one in _UNSETTING for one in words)


def names_taking(text: str) -> bool:
    """Whether a word of *text* for a shell takes variables from programs, or gives them words."""
    return _has_one_of(_IN_TEXTS, without_quotes(text))


def without_quotes(text: str) -> str:
    r"""Leave out what may stand in the name of a program and is no part of it: `s\udo`, `x''args`."""
    for one in _QUOTING:
        text = text.replace(one, "")
    return text


def _may_take_in(plain: str) -> bool:
    return _has_one_of(_IN_PLAIN_WORDS, plain)


def _has_one_of(patterns: Mapping[str, re.Pattern[str]], text: str) -> bool:
    # In a text of many characters a pattern alone takes ten times as long to find nothing.
    found = chain.from_iterable(names for short, names in _SHORTEST.items() if short in text)
    return any(one in text and patterns[one].search(text) is not None for one in found)


def is_taking_program(word: str) -> bool:
    """Whether *word* is a program, and no command of shells, that may take variables from what it starts."""
    base = word.rpartition("/")[2]
    return base in _STARTING and base != "exec"


def is_harmless(line: Sequence[str]) -> bool:
    """Whether a command line whose words stand for certain is that of a tool or a service, and starts no framework."""
    name = line[0].rpartition("/")[2]
    if name in _SERVICES or (line[1:2] and line[1] in _SERVING.get(name, ())):
        return True
    return bool(tool(name)) and not runs_another([name, *line[1:]])


def starts_shell(words: Sequence[str]) -> bool:
    """Whether *words* that name no program start a shell, which reads what they are given: `su - app <<E`."""
    starters = [one for one in (word.rpartition("/")[2] for word in words) if one in _WITH_SHELL]
    return any(_WITH_SHELL[one].fullmatch(word) for one in starters[-1:] for word in ("", *words))


def commands_in(text: str, work: Callable[[int], None]) -> Iterator[list[str]]:
    """Yield the commands of a text that is not read, by its plain words, which may take variables from programs."""
    if not _may_take_in(text):
        return
    commands = _COMMAND.findall(text)
    work(len(commands))
    for command in filter(_may_take_in, commands):
        words = list(dropwhile(_is_in_front, _REDIRECTION.sub(" ", command).split()))
        work(_STEPS_OF_COMMAND + _STEPS_OF_WORD * len(words))
        yield words


def taken_in(words: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Return those of a command's *words* that take variables from a framework, and whether it may get more words."""
    at, takes_text = unwrapped(words)
    is_started = at < len(words) and not takes_text
    if words[:1] == ["set"] and any(map(_ERASING.fullmatch, words)):
        return ["set -e", *words[1:]], False
    if words and words[0] in _UNSETTING:
        return words, False
    if is_started and is_harmless(words[at:]):
        return [], False
    taking = words[:at] if is_started else words
    return taking if may_take(words[:at]) else [], is_started and takes_words(words[:at])


def _is_in_front(word: str) -> bool:
    """Whether a word may stand in front of a command: `if`, `{` where it is unread, `A=b`."""
    return word in KEYWORDS or word.startswith(UNREAD) or _ASSIGNING.match(word) is not None


class Taken(NamedTuple):
    """What is taken from a program."""

    every: str  # by what all variables are; "" if they are not
    named: Mapping[str, str]  # by what one is
    kept: Collection[str]

    def by(self, name: str) -> str:
        """Return what takes the variable *name*; "" if nothing does."""
        return "" if name in self.kept else self.named.get(name, self.every)


def taken_by(words: Sequence[str]) -> Taken:
    """Return what *words* before a program take from it."""
    every = starter = ""
    named: dict[str, str] = {}
    kept: set[str] = set()
    for before, word in pairwise(["", *words]):
        base = word.rpartition("/")[2]
        option, equals, value = word.partition("=")
        if base in _STARTING or word in _UNSETTING:
            starter = base
        if starter in _STARTING and _STARTING[starter].fullmatch(base):
            every = starter if base == starter else f"{starter} {base}"
        elif starter == "sudo" and KEEPING.fullmatch(word):
            every = ""
        elif starter == "sudo" and option == "--preserve-env":
            kept.update(value.split(","))
        elif starter in _UNSETTING:
            named[word] = _UNSETTING[starter]
        elif starter == "env" and (option == "--unset" or before in UNSETTING or word.startswith("-u")):
            named[value or word.removeprefix("-u")] = "env -u"
        elif equals:
            kept.add(option)
    return Taken(every, named, kept)


def fix(how: str, name: str, value: str) -> str:
    """Say what to do where *how* takes the variable *name* away, which should hold *value*."""
    match how.split():
        case ["sudo"]:
            return f"Write sudo --preserve-env={name}"
        case ["su" | "runuser" | "setpriv" as starter, option]:
            return f"Write {starter} without {option}"
        case ["exec", _]:
            return "Write exec without -c"
        case ["doas"]:
            return f"Write doas env {name}={value}"
        case ["an", "array"]:
            return f"Write {name}={value}"
        case ["unset" | "unsetenv"] | ["env", "-u"] | ["export", "-n"] | ["set", "-e"] | [_, "+x"]:
            return f"Remove {how} {name}"
        case _:
            return f"Write {how} {name}={value}"
