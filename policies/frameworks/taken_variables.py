"""Which variables of the container a program is started without: `unset NAME`, `env -i`, `sudo`."""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from policies.frameworks.shell.options import KEEPING, LOGIN

# Programs and built-in commands before a program, as far as they take variables away, and their options that do.
_STARTING: Final = {
    "declare": re.compile("(?!)"),
    "doas": re.compile("doas"),
    "env": re.compile(r"-|-[0v]*i[0v]*|--ig[a-z-]*"),
    "exec": re.compile(r"-[acl]*c[acl]*"),
    "runuser": LOGIN,
    "setpriv": re.compile("--reset-env"),
    "su": LOGIN,
    "sudo": re.compile("sudo"),
    "typeset": re.compile("(?!)"),
    "unset": re.compile("(?!)"),
}
_UNSETTING: Final = {"declare": "declare +x", "typeset": "typeset +x", "unset": "unset"}
_SERVICES: Final = frozenset(
    (
        *("cron", "crond", "dpkg", "fusermount", "gcsfuse", "make", "modprobe", "mysql", "nginx"),
        *("nvidia-persistenced", "pg_isready", "psql", "rsync", "rsyslogd", "s3fs", "service", "ssh-keygen", "sshd"),
        *("sysctl", "systemctl", "tar", "update-ca-certificates"),
    )
)
_INSTALLING: Final = re.compile(r"python[0-9.]* -m pip")
TAKING: Final = tuple(f"{name} " for name in _STARTING)  # what a text has in which anything is taken


def may_take(words: Sequence[str]) -> bool:
    """Whether *words* before a program may take variables from it."""
    return any(one.rpartition("/")[2] in _STARTING for one in words)


def is_service(line: Sequence[str]) -> bool:
    """Whether a command line starts what is no framework, and no tool of which nothing matters."""
    return line[0].rpartition("/")[2] in _SERVICES or _INSTALLING.fullmatch(" ".join(line[:3])) is not None


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
        if base in _STARTING:
            starter = base
        if starter and _STARTING[starter].fullmatch(base):
            every = starter if base == starter else f"{starter} {base}"
        elif starter == "sudo" and KEEPING.fullmatch(word):
            every = ""
        elif starter == "sudo" and option == "--preserve-env":
            kept.update(value.split(","))
        elif starter in _UNSETTING:
            named[word] = _UNSETTING[starter]
        elif starter == "env" and (option == "--unset" or before in ("-u", "--unset") or word.startswith("-u")):
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
        case ["unset"] | ["env", "-u"] | [_, "+x"]:
            return f"Remove {how} {name}"
        case _:
            return f"Write {how} {name}={value}"
