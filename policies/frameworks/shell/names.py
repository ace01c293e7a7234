"""Variables that mean something to shells themselves."""

import re
from typing import Final

from policies.frameworks.shell.plain_words import SET_BY_SHELLS

RUN_BY_SHELLS: Final = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4"})  # as texts
# By git, by what git and gh start, and by readers of texts; GIT_CONFIG_VALUE_0 and its like are told by how they begin.
_NAMES_OF_TOOLS = """
BROWSER EDITOR GH_BROWSER GH_EDITOR GH_PAGER GIT_ASKPASS GIT_DIFFTOOL_EXTCMD GIT_EDITOR GIT_EXEC_PATH GIT_EXTERNAL_DIFF
GIT_MAN_VIEWER GIT_PAGER GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_TEMPLATE_DIR
GIT_TEST_FSMONITOR LESSOPEN MANPAGER PAGER SSH_ASKPASS VISUAL
"""
_RUN_BY_TOOLS: Final = frozenset(_NAMES_OF_TOOLS.split())
_PREFIX_OF_BASH: Final = "BASH_"
_OF_BASH: Final = frozenset({"BASH_SUBSHELL", "BASH_VERSION"})  # which say nothing of the text
# Which a shell may set itself, keep from being set, or make something else of.
_NAMES_OF_SHELLS = """
BASHOPTS BASHPID COLUMNS DIRSTACK ENV EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HISTFILE HISTSIZE IFS
KSHEGID KSHEUID KSHGID KSHUID KSH_VERSION LINENO LINES OLDPWD OPTERR OPTIND PATH PGRP PIPESTATUS PPID PWD RANDOM
SECONDS SHELL SHELLOPTS SHLVL SRANDOM UID USER_ID status
"""
_OF_RUNTIMES: Final = frozenset({"HOME", "HOSTNAME", "TERM"})
_OF_IMAGES: Final = ("BASH", "CUDA", "LANG", "LC_", "LD_", "NV", "PYTHON")
_OF_SERVICES = re.compile(r"_(?:SERVICE_HOST|SERVICE_PORT|PORT)(?:_\w+)?\Z", re.ASCII)
OF_SHELLS: Final = SET_BY_SHELLS | frozenset(_NAMES_OF_SHELLS.split())


def is_set_by_shells(name: str) -> bool:
    """Whether a shell may set it to what it reads, or to what it was given elsewhere."""
    return name in SET_BY_SHELLS or (name.startswith(_PREFIX_OF_BASH) and name not in _OF_BASH)


def names_command(name: str) -> bool:
    """Whether shells or tools run what a variable of that name holds."""
    return name in RUN_BY_SHELLS or name in _RUN_BY_TOOLS or name.startswith("GIT_CONFIG")


def may_be_handed_in(name: str) -> bool:
    """Whether a container may get it though its pod does not say so: of its runtime, its image, services or shells."""
    if name in OF_SHELLS or name in RUN_BY_SHELLS or name in _OF_RUNTIMES:
        return True
    return name.startswith(_OF_IMAGES) or _OF_SERVICES.search(name) is not None
