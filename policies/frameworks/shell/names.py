"""Variables that mean something to shells themselves."""

from typing import Final

from policies.frameworks.shell.plain_words import SET_BY_SHELLS

RUN_BY_SHELLS: Final = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4"})  # as texts
_PREFIX_OF_BASH: Final = "BASH_"
_OF_BASH: Final = frozenset({"BASH_SUBSHELL", "BASH_VERSION"})  # which say nothing of the text
# Which a shell may set itself, keep from being set, or make something else of.
_NAMES_OF_SHELLS = """
BASHOPTS BASHPID COLUMNS DIRSTACK ENV EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HISTFILE HISTSIZE IFS
KSHEGID KSHEUID KSHGID KSHUID KSH_VERSION LINENO LINES OLDPWD OPTERR OPTIND PATH PGRP PIPESTATUS PPID PWD RANDOM
SECONDS SHELL SHELLOPTS SHLVL SRANDOM UID USER_ID status
"""
OF_SHELLS: Final = SET_BY_SHELLS | frozenset(_NAMES_OF_SHELLS.split())


def is_set_by_shells(name: str) -> bool:
    """Whether a shell may set it to what it reads, or to what it was given elsewhere."""
    return name in SET_BY_SHELLS or (name.startswith(_PREFIX_OF_BASH) and name not in _OF_BASH)
