"""What git runs of its own words: commands that subcommands, options and settings name."""

import re
from collections.abc import Sequence
from typing import Final

from policies.frameworks.expansion import UNREAD

# How words begin that make it run what another word says.
_RUNNING: Final = (
    *("!", "--config-env", "-x", "bisect", "daemon", "difftool", "filter", "for-each-repo", "grep", "hook", "instaweb"),
    *("merge-index", "mergetool", "rebase", "remote-ext", "send-email", "submodule", "web--browse"),
)
_OPTIONS: Final = ("--exec-path", "--extcmd", "--receive-pack", "--upload-pack")  # abbreviated, too
_UPLOAD_PACK_OF_CLONE = re.compile(r"-[lnqsv46]*u")
_SETTING = re.compile(rf"(?:--c[a-z]*=)?([\w-]*(?:\.|{UNREAD})[^=]*)(=?)")
_SECTIONS: Final = """
advice author branch clone color column commit committer fetch format http i18n index log pack pull push rerere safe
status tag transfer url user
"""
# Of all settings those that name no command, of a pager or a helper, say.
_HARMLESS = re.compile(
    rf"(?:{'|'.join(_SECTIONS.split())})\."
    r"|core\.(?:autocrlf|compression|eol|filemode|ignorecase|longpaths|quotepath|safecrlf|symlinks)\Z"
    r"|credential\.(?:.*\.)?(?:interactive|usehttppath|username)\Z"
    r"|lfs\.(?:activitytimeout|concurrenttransfers|fetch\w+|url)\Z"
    r"|(?:gc\.auto|init\.defaultbranch|protocol\.version)\Z",
    re.IGNORECASE,
)


def runs_in_git(operands: Sequence[str]) -> bool:
    """Whether git may run what one of its words says, or what a setting of its words does."""
    if "clone" in operands and any(map(_UPLOAD_PACK_OF_CLONE.match, operands)):
        return True
    if any(one.lower().startswith(_RUNNING) or "ext::" in one or _is_running(one) for one in operands):
        return True
    at = operands.index("config") if "config" in operands else len(operands)
    key = next((one for one in operands[at + 1 :] if not one.startswith("-")), "")
    return key.startswith(UNREAD) or any(_names_command(one, is_key=at < len(operands)) for one in operands)


def _is_running(word: str) -> bool:
    name = word.partition("=")[0].partition(UNREAD)[0]
    return len(name) > len("--") and any(one.startswith(name) for one in _OPTIONS)


def _names_command(word: str, *, is_key: bool) -> bool:
    """Whether a word may be a setting that names a command; *is_key*: its value may be another word."""
    setting = _SETTING.match(word)
    if setting is None or not (setting[2] or is_key) or (is_key and word.startswith(UNREAD)):
        return False
    return not _HARMLESS.match(setting[1])
