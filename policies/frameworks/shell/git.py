"""What git runs of its own words: commands that subcommands, options and settings name."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from policies.frameworks.expansion import UNREAD

# Those that run what their words say.
_RUNNING = re.compile(
    r"(?:bisect|daemon|difftool|filter|for-each-repo|grep|hook|instaweb|merge-index|mergetool|rebase|remote-ext"
    r"|send-email|submodule|web--browse)(?:-.+)?"
)
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_OPTIONS: Final = ("--exec-path", "--extcmd", "--receive-pack", "--upload-pack")  # abbreviated, too
_WITH_WORD: Final = frozenset(
    {"-C", "-c", "--attr-source", "--git-dir", "--namespace", "--super-prefix", "--work-tree"}
)
_UPLOAD_PACK_OF_CLONE = re.compile(r"-[lnqsv46]*u")
_SETTING_OF_CLONE = re.compile(r"(?:-[lnqsv46]*c|--c[a-z]*(?:=|\Z))\s*(.*)", re.DOTALL)
_WITH_WORD_IN_CONFIG = re.compile(r"-z?f|--(?:blo?b?|c[a-z]*|d[a-z]*|fi(?:le?)?|t[a-z]*|ur?l?|v[a-z]*)")
_READING_IN_CONFIG = re.compile(r"--(?:get[a-z-]*|list|unset[a-z-]*)|-l|get|list|unset")
_OF_CONFIG: Final = ("get", "list", "set", "unset")
_FORM_OF_KEY = re.compile(r"[A-Za-z][\w-]*\.(?:.*\.)?[A-Za-z][\w-]*", re.DOTALL)
_HAS_WORDS = re.compile(r"[\s$`{<]")  # once a shell runs it
_MAY_BE_NOTHING = re.compile(rf"(?:{UNREAD}.)+", re.DOTALL)
_BEHIND_ANOTHER: Final = ";|&\n"  # what a command stands behind
_PUT_TOGETHER: Final = f"{UNREAD}{_BEHIND_ANOTHER}\"'\\{{*?[<>("
# The names of helpers that are git's own, and pagers that write on, too.
_RUNS_NOTHING = re.compile(
    r"|true|false|yes|no|on|off|auto|never|[0-9.]+[kmg]?|cat|/dev/null|(?:cache|store)(?: --?[\w./=-]+){0,2}",
    re.IGNORECASE,
)
_SECTIONS: Final = """
advice am apply author blame branch checkout clean clone color column commit committer extensions feature fetch format
http i18n index log maintenance pack pull push rerere receive safe stash status tag transfer url user
"""
_OF_CORE: Final = """
abbrev autocrlf bigfilethreshold compression eol filemode fsync fsyncmethod ignorecase longpaths packedgitlimit
packedgitwindowsize preloadindex quotepath safecrlf sharedrepository sparsecheckout symlinks untrackedcache
"""
_OF_LFS: Final = r"activitytimeout|concurrenttransfers|dialtimeout|fetch\w+|skip\w+|storage|url"
# Of all settings those that name no command, of a pager or a helper, say.
_HARMLESS = re.compile(
    rf"(?:{'|'.join(_SECTIONS.split())})\."
    rf"|core\.(?:{'|'.join(_OF_CORE.split())})\Z"
    r"|credential\.(?:.*\.)?(?:interactive|usehttppath|username)\Z"
    rf"|lfs\.(?:{_OF_LFS})\Z"
    r"|remote\..*\.(?:fetch|partialclonefilter|promisor|pushurl|url)\Z"
    r"|(?:gc\.auto|init\.defaultbranch|protocol\.(?:version|(?!ext\.)[\w-]+\.allow))\Z",
    re.IGNORECASE | re.DOTALL,
)


def runs_in_git(operands: Sequence[str]) -> bool:
    """Whether git may run what one of its words says, or what a setting of its words does."""
    if any("ext::" in one or _is_running(one) for one in operands):
        return True
    return _runs(operands) or _runs([one for one in operands if not _MAY_BE_NOTHING.fullmatch(one)])


def _runs(operands: Sequence[str]) -> bool:
    at = 0
    while at < len(operands) and operands[at].startswith("-"):
        at += 1 + (operands[at] in _WITH_WORD)
    own, behind = operands[:at], operands[at:]
    if any(before == "-c" and _names_command(one) for before, one in pairwise(own)):
        return True
    return any(one.startswith("--config-env") for one in own) or (bool(behind) and _runs_behind(behind))


def _is_running(word: str) -> bool:
    name = word.partition("=")[0].partition(UNREAD)[0]
    return len(name) > len("--") and any(one.startswith(name) for one in _OPTIONS)


def _runs_behind(behind: Sequence[str]) -> bool:
    subcommand, *words = behind
    if not _SUBCOMMAND.fullmatch(subcommand):  # any of them may be one, behind what is unread
        return any(map(_RUNNING.fullmatch, words)) or _may_set(behind) or _runs_in_clone(words)
    if subcommand == "config":
        return _runs_in_config(words)
    is_clone = subcommand == "clone" or behind[:2] == ["lfs", "clone"]
    return bool(_RUNNING.fullmatch(subcommand)) or (is_clone and _runs_in_clone(words))


def _runs_in_clone(words: Sequence[str]) -> bool:
    if any(map(_UPLOAD_PACK_OF_CLONE.match, words)):
        return True
    for one, behind in pairwise([*words, ""]):
        setting = _SETTING_OF_CLONE.fullmatch(one)
        if setting and _names_command(setting[1] or behind):
            return True
        if one.startswith(UNREAD) and _may_be_command(behind):  # it may be -u or -c
            return True
    return False


def _may_be_command(word: str) -> bool:
    """Whether a shell may start a program by a word, and give it one that is not written out in it."""
    if "`" in word or "$" in word:
        return True
    signs = _BEHIND_ANOTHER if word.startswith("-") else _PUT_TOGETHER
    return any(map(str.isspace, word)) and not set(signs).isdisjoint(word)


def _runs_in_config(words: Sequence[str]) -> bool:
    at = 0
    while at < len(words) and (words[at].startswith("-") or words[at] in _OF_CONFIG):
        if _READING_IN_CONFIG.fullmatch(words[at]):
            return False
        at += 1 + bool(_WITH_WORD_IN_CONFIG.fullmatch(words[at]))
    key, value = [*words[at : at + 2], "", ""][:2]
    return key.startswith(UNREAD) or not (_RUNS_NOTHING.fullmatch(value) or _HARMLESS.match(key))


def _names_command(setting: str) -> bool:
    """Whether the setting of `-c` may name a command; without a value it is true."""
    key, sign, value = setting.partition("=")
    known, unread, _ = key.partition(UNREAD)
    if unread:
        return not _HARMLESS.match(known)
    return bool(sign) and not (_RUNS_NOTHING.fullmatch(value) or _HARMLESS.match(key))


def _may_set(words: Sequence[str]) -> bool:
    """Whether one of *words* names a command as `-c` or `config` gets it, whatever stands before them."""
    for one, behind in pairwise([*words, ""]):
        key, sign, _ = one.partition("=")
        if sign and _FORM_OF_KEY.fullmatch(key) and _names_command(one):
            return True
        if _FORM_OF_KEY.fullmatch(one) and not _HARMLESS.match(one) and (UNREAD in behind or _HAS_WORDS.search(behind)):
            return True
    return False
