"""What a container's command line runs: behind `tini --`, `env NAME=value` and their like, unwrapped once."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from policies.changes import ReplaceArgument
from policies.handlers import commands_beside
from policies.pod import Container

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "yash", "rbash", "fish", "csh", "tcsh"})
POSIX_SHELLS = SHELLS - {"fish", "csh", "tcsh", "zsh"}  # the others have expansions of their own


class _Taking(NamedTuple):
    """The options of a program that have the next word as their own."""

    words: frozenset[str]  # and abbreviations
    together: re.Pattern[str]  # letters, of which the last is one

    @classmethod
    def of(cls, options: str) -> "_Taking":
        """Read *options*; one with a question mark behind it has a word only where that is joined to it."""
        every = options.split()
        names = [one for one in every if not one.endswith("?")]
        short = "".join([one[1] for one in names if not one.startswith("--")])
        first = "".join([short, *(one[1] for one in every if one.endswith("?"))])
        abbreviated = (one[:end] for one in names for end in range(len("--x"), len(one)))
        return cls(
            frozenset([*names, *abbreviated]),
            re.compile(f"-[^-{first}][^{first}]*+[{short}]" if short else "(?!)"),
        )


# Programs that run what follows their own words, and those of their options that take a word of their own.
_WRAPPERS: dict[str, _Taking] = {
    name: _Taking.of(options)
    for name, options in {
        # As Argo starts each container: https://github.com/argoproj/argo-workflows/tree/main/cmd/argoexec/commands
        "argoexec": "--loglevel --log-format --gloglevel --kubeconfig --as --as-uid --as-group --as-user-extra --server"
        " -s --certificate-authority --tls-server-name --proxy-url --client-certificate --client-key --cluster"
        " --context --namespace -n --token --user --username --password --request-timeout --pod-annotations",
        "builtin": "",
        "busybox": "",
        "catatonit": "",
        "chroot": "--groups --userspec",
        "chrt": "-T -P -D --sched-runtime --sched-period --sched-deadline",
        "command": "",
        "doas": "-u -C",
        "dumb-init": "-r --rewrite",
        "env": "-u -C --unset --chdir",
        "exec": "-a",
        "flock": "-w -E --timeout --wait --conflict-exit-code",
        "gosu": "",
        "ionice": "-c -n -p -P -u --class --classdata --pid --pgid --uid",
        "nice": "-n --adjustment",
        "nohup": "",
        "numactl": "-N -m -C -i -p --cpunodebind --membind --physcpubind --interleave --preferred",
        "nvidia_entrypoint.sh": "",
        "prlimit": "-p --pid",
        "runuser": "-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment",
        "setpriv": "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --selinux-label",
        "setsid": "",
        "stdbuf": "-i -o -e --input --output --error",
        "strace": "-a -b -e -E -I -o -O -p -P -s -S -u -U -X --attach --columns --env --output --string-limit --trace"
        " --trace-path --user",
        "su": "-g -G -s -w --group --supp-group --shell --whitelist-environment",
        "su-exec": "",
        "sudo": "-u -g -h -p -C -D -R -T -U -r -t --user --group --host --chdir --chroot --close-from --command-timeout"
        " --other-user --prompt --role --type",
        "taskset": "",
        "time": "-f -o --format --output",
        "timeout": "-k -s --kill-after --signal",
        "tini": "-p -e",
        "toybox": "",
        "unshare": "-w -R -S -G --map-user --map-group --map-users --map-groups --setuid --setgid --wd --root",
        "xargs": "-I -n -P -d -a -E -L -s -e? -i? -l? --arg-file --delimiter --max-args --max-chars --max-procs"
        " --process-slot-var",
    }.items()
}
# Their first word is a user, a directory, a file or, as `emissary` is, a command of theirs.
_OPERANDS = frozenset({"argoexec", "chroot", "flock", "gosu", "su", "su-exec"})
_TEXT_OPTIONS = {  # what follows is a text for a shell, or one that is split into words
    "env": ("-S", "--split-string"),
    "flock": ("-c", "--c"),
    "runuser": ("-c", "--c", "--se"),
    "su": ("-c", "--c", "--se"),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_PYTHON = re.compile(r"(?:/[^\s]*/)?python[0-9.]*", re.ASCII)
_PYTHON_SWITCHES = frozenset({"-u", "-O", "-OO", "-B", "-E", "-s", "-S", "-I", "-X", "-W"})
_LONGEST_PROGRAM = 8  # words
_CHARACTERS_OF_STEP: Final = 16  # of words and variables
_STEPS_OF_WORD: Final = 2
_STEPS_OF_REFERENCE: Final = 3  # of a variable to others, beside the one of each
_STEPS_OF_CONTAINER: Final = 4  # but the first
_STEPS_OF_SHARE: Final = 60  # likewise, of one with a share


class CommandLine:
    """What `command` and `args` say together."""

    __slots__ = ("_args_at", "_program_at", "has_command", "hooks", "runs_through_shell", "started", "words")

    def __init__(self, container: Container) -> None:
        """Find the program in it, which costs what its words do."""
        command, args = container.command or (), container.args or ()
        self.words: Sequence[str] = [*command, *args]
        self.has_command = bool(command)  # else the image's own program gets the words
        self._args_at = len(command)
        self.hooks = list(commands_beside(container))
        self._program_at, takes_text = unwrapped(self.words)
        # A shell takes appended arguments for its own.
        self.runs_through_shell = takes_text or self._basename(self._program_at) in SHELLS
        self.started = self._started()

    @property
    def ends_options(self) -> bool:
        """Whether the program's options end with --, so that what is appended is none."""
        if "--" not in self.words:
            return False
        return self.words[0].startswith("-") or "--" in self.words[self._program_at :]

    def starts(self, program: str) -> bool:
        """Whether it starts *program*, a command line with single spaces, so that the program gets what is appended."""
        words = _words(program)
        return any(line[: len(words)] == words for line in self.started)

    def replaced(self, position: int, text: str) -> ReplaceArgument:
        """Put *text* in the place of the word at *position*."""
        if position < self._args_at:
            return ReplaceArgument("command", position, text)
        return ReplaceArgument("args", position - self._args_at, text)

    def _basename(self, position: int) -> str:
        """Cut the directories off a program's path."""
        return self.words[position].rpartition("/")[2] if position < len(self.words) else ""

    def _started(self) -> list[tuple[str, ...]]:
        """List the first words of what is started, without python's own options, each way a catalogue may name it."""
        at = self._program_at
        if at >= len(self.words):
            return []
        if not _PYTHON.fullmatch(self.words[at]):
            return [(self._basename(at), *self.words[at + 1 : at + _LONGEST_PROGRAM])]
        at += 1
        while at < len(self.words) and self.words[at] in _PYTHON_SWITCHES:
            at += 2 if self.words[at] in ("-X", "-W") else 1
        rest = tuple(self.words[at : at + _LONGEST_PROGRAM])
        script = [(self._basename(at), *rest[1:])] if rest else []
        return [("python", *rest), *script]


def steps_beside(containers: Sequence[Container], *, shares: int = 1) -> int:
    """Count the steps that words, variables and containers take beside shells' texts, some of them with *shares*."""
    characters = words = variables = 0
    for one in containers:
        for line in (one.command or (), one.args or (), *commands_beside(one)):
            words += len(line)
            characters += sum(map(len, line))
        if one.env:
            values = [variable.value for variable in one.env if variable.value]
            characters += sum(map(len, values))
            variables += len(one.env) + _STEPS_OF_REFERENCE * sum(["$(" in value for value in values])
    of_containers = _STEPS_OF_CONTAINER * (len(containers) - 1) + _STEPS_OF_SHARE * (shares - 1)
    return characters // _CHARACTERS_OF_STEP + _STEPS_OF_WORD * words + variables + of_containers


@cache
def _words(program: str) -> tuple[str, ...]:
    return tuple(program.split())


def unwrapped(words: Sequence[str]) -> tuple[int, bool]:
    """Return where the words of the program begin, and whether a wrapper hands a text to a shell instead."""
    at, end = 0, len(words)
    if words and words[0].startswith("-"):  # options alone go to the image's entry point
        return end, False
    while at < end:
        wrapper = words[at].rpartition("/")[2]
        takes = _WRAPPERS.get(wrapper)
        if takes is None:
            break
        at += 1
        operands, has_options = 1 if wrapper in _OPERANDS else 0, True
        text_options = _TEXT_OPTIONS.get(wrapper, ())
        while at < end:
            word = words[at]
            if has_options and word.startswith("-"):
                if word.startswith(text_options):
                    return at, True
                has_options = word != "--"
                at += 2 if word in takes.words or takes.together.fullmatch(word) else 1
            elif "=" in word and _ASSIGNMENT.match(word):
                at += 1
            elif operands:
                operands -= 1
                at += 1
            elif word[:1].isdigit():
                at += 1
            else:
                break
    return _installing_at(words, min(at, end)), False


def _installing_at(words: Sequence[str], at: int) -> int:
    """Return where `pip` stands in `python -m pip` and `uv pip`, which start nothing else; else *at*."""
    following = tuple(words[at + 1 : at + 3])
    if following == ("-m", "pip") and _PYTHON.fullmatch(words[at]):
        return at + 2
    return at + 1 if following[:1] == ("pip",) and words[at] == "uv" else at
