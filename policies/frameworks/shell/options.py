"""What the words before a program, and the options of a shell, say of where it gets its words and variables."""

import re
from collections.abc import Sequence
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.command_line import SHELLS
from policies.frameworks.expansion import UNREAD
from policies.frameworks.shell.rest import SPACE

LOGIN: Final = re.compile(r"-|-[A-Za-z]*l[A-Za-z]*|--l[a-z]*")  # of su, also abbreviated: the user's own environment
RESETTING: Final = re.compile(r"--res[a-z-]*")  # of setpriv
KEEPING: Final = re.compile(r"-[A-Za-z]*E[A-Za-z]*|--preserve-env")  # of sudo
# Of a shell, with others that stand together, in a word or in the code that another language gets.
MAY_TAKE_TEXT: Final = re.compile(
    r"(?<![\w+-])(?:[+-][A-Zabd-z]*+c[A-Za-z]*+|--(?:c(?:om?|omma?|omman|ommand)?|se(?:s[a-z-]*)?))(?![\w-])"
)
_FILES_OF_INPUT: Final = ("/fd/", "stdin", "/proc/")
_STREAMS: Final = ("stdin", "stdout", "stderr")
_IN_OTHER_DIRECTORY = re.compile(rf"/(?!dev/|proc/)[\w-]+/(?!.*\.\.)[^*?\[\]{{}}~{UNREAD}]*")
_UP_TO_PATTERN = re.compile(rf".*(?:[*?\[\]{{}}~]|{UNREAD}.?)", re.DOTALL)
_LONG_OF_ENV: Final = "|".join(  # with a word, and abbreviated
    name[:end] for name in ("argv0", "chdir", "split-string", "unset") for end in range(1, len(name) + 1)
)
_TOLD_APART: Final = rf"(?:unset|chdir|split-string|(?:unset|chdir)=[^{UNREAD}]*)\Z"
# Options that stand together, hold a word, or are abbreviated: what `env` or `exec` has not, starts no program.
_ODD_OPTIONS: Final = {
    "env": re.compile(rf"-[0iv]*+[aCSu].+|-[0iv]+[aCSu]|-a|--(?!{_TOLD_APART})(?:{_LONG_OF_ENV})(?:=.*)?", re.DOTALL),
    "exec": re.compile(r"-[cfl]*+a.+|-[cfl]+a|--as?", re.DOTALL),
}
_WRITTEN_OPTION = re.compile(rf"-[^={UNREAD}]*+=")  # with any value it is no other option and no built-in command
_MOST_STARTING: Final = 4  # of one command line
_MOST_OPTIONS: Final = 64  # words of one shell
_WITH_WORD: Final = frozenset({"-u", "-C", "-S", "-a", "--unset", "--chdir"})
_LONG_WITH_WORD: Final = frozenset({"--rcfile", "--init-file", "-rcfile", "-init-file"})
_LONG: Final = frozenset(
    {"-debugger", "-login", "-noediting", "-noprofile", "-norc", "-posix", "-restricted", "-verbose"}
)


def loses_environment(wrappers: Sequence[str]) -> bool:
    """Whether the program behind *wrappers* and their words may not have all variables of the container."""
    names = [one.rpartition("/")[2] for one in wrappers]
    if "doas" in names or ("sudo" in names and not any(map(KEEPING.fullmatch, wrappers))):
        return True
    if ("su" in names or "runuser" in names) and any(map(LOGIN.fullmatch, wrappers)):
        return True
    if "setpriv" in names and any(map(RESETTING.fullmatch, wrappers)):
        return True
    return "env" in names and any(one.startswith("-") for one in wrappers[names.index("env") :])


def has_odd_option(words: Sequence[str]) -> bool:
    """Whether `env` or `exec` has options that stand together or are abbreviated, of which one may take a word."""
    starting = [at for at, word in enumerate(words) if word.rpartition("/")[2] in _ODD_OPTIONS]
    for at in starting[:_MOST_STARTING]:
        odd, before = _ODD_OPTIONS[words[at].rpartition("/")[2]], ""
        for one in words[at + 1 :]:
            if one == "--" or not (one.startswith("-") or "=" in one or before in _WITH_WORD):
                break
            if odd.fullmatch(one) or (one.startswith("-") and may_be_any(one)):
                return True
            before = one
    return len(starting) > _MOST_STARTING


def may_be_any(word: str) -> bool:
    """Whether a word may be the name of any program, or any option."""
    return UNREAD in word and not _WRITTEN_OPTION.match(word)


def may_be_text(word: str) -> bool:
    """Whether a word is a shell, or a text that one may run."""
    return UNREAD in word or word.rpartition("/")[2] in SHELLS or SPACE.search(word) is not None


def takes_words(wrappers: Sequence[str]) -> bool:
    """Whether the program gets words from elsewhere."""
    return any(one.rpartition("/")[2] == "xargs" for one in wrappers)


def takes_words_of_file(wrappers: Sequence[str]) -> bool:
    """Whether these words are a file's, and not of what else a text runs."""
    return any(one.startswith(("-a", "--arg-file")) for one in wrappers)


def may_be_stream(path: str) -> bool:
    """
    Whether a path may lead to what a command reads or writes already, as `/dev/stdout` and `/proc/self/fd/1` do.

    Its last name says so, but in a directory of files that is written out; one with a pattern in it may end as what
    stands behind that.
    """
    if _IN_OTHER_DIRECTORY.fullmatch(path):
        return False
    name = path.rpartition("/")[2]
    pattern = _UP_TO_PATTERN.match(name)
    if pattern is None:
        return name in _STREAMS or name.isdigit()
    end = name[pattern.end() :]
    return not end or end.isdigit() or any(one.endswith(end) for one in _STREAMS)


def is_input(path: str) -> bool:
    """Whether a script at *path* is what a shell is given with a here-document or a pipe."""
    return any(one in path for one in _FILES_OF_INPUT) or path.rpartition("/")[2].isdigit()


def behind_options(words: Sequence[str]) -> tuple[int, bool]:
    """
    Return where the options of a shell end, and whether a text follows.

    Raises:
        UnreadableError: If there are more of them than in any real command.
    """
    at, has_text = 0, False
    while at < len(words) and words[at].startswith(("-", "+")) and words[at] != "--":
        if at > _MOST_OPTIONS:
            raise UnreadableError
        option = words[at]
        is_long = option.startswith("--") or option in _LONG_WITH_WORD or option in _LONG
        has_text |= not is_long and "c" in option
        at += 1 + (option in _LONG_WITH_WORD if is_long else option.count("o") + option.count("O"))
    return at + (words[at : at + 1] == ["--"]), has_text
