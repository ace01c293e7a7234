"""The option `--config` of programs that have one of their own, are no framework and start none with their words."""

from collections.abc import Sequence
from typing import Final

from policies.frameworks.command_line import unwrapped
from policies.frameworks.shell.tools import is_in_usual_place, runs_another
from policies.frameworks.written_form import canonical

_PROGRAMS: Final = frozenset(
    (
        *("caddy", "cloudflared", "containerd", "crane", "curl", "fluent-bit", "gunicorn", "litellm", "nats-server"),
        *("oauth2-proxy", "oras", "otelcol", "otelcol-contrib", "rclone", "s3cmd", "telegraf", "vault", "vector"),
        "wget",
    )
)
_NAME: Final = "config"


def has_own_config(line: Sequence[str]) -> bool:
    """Whether a command line whose words stand for certain starts such a program."""
    at, takes_text = unwrapped(line)
    # An option of `sudo` or `time` may have a word of its own that looks like the program: `sudo -nu curl vllm`.
    if takes_text or at >= len(line) or any(one.startswith("-") for one in line[:at]):
        return False
    name = line[at].rpartition("/")[2]
    if name == "cmake":  # else it may be `cmake -E env`, and behind -- are the words of another
        return is_in_usual_place(line[at]) and line[at + 1 : at + 2] == ["--build"] and "--" not in line
    is_its_own = is_in_usual_place(line[at]) or line[at] == f"/{name}"  # where images of one program have it
    return name in _PROGRAMS and is_its_own and not runs_another(line[at:])


def is_config(word: str) -> bool:
    """Whether a word is that option, with its value or without."""
    return word.startswith("-") and canonical(word.partition("=")[0]) == _NAME


def without_config(word: str) -> str:
    """Leave the option out of a word; its value stays, in which another command may stand."""
    return word.partition("=")[2] if is_config(word) else word
