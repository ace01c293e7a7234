"""
Credential plugins of kubeconfigs (client.authentication.k8s.io), which print a token or a certificate.

As client-go has it: what is told to a plugin, which answers are valid, and that no failure means going on as nobody.
"""

import os
import shutil
import sys
from datetime import UTC, datetime
from errno import ENOENT
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Final, Literal

import msgspec
from kubernetes import config

from program.bounded_process import ProcessError, is_terminal, output_of
from program.exec_answer import Status, read_answer
from program.login import Credential, CredentialError, bearer
from program.terminal import printable

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_FIRST_SECONDS: Final = 300.0  # somebody may have to sign in
_LATER_SECONDS: Final = 30.0
_EARLY_SECONDS: Final = 10.0  # before a credential expires: longer than a request takes
_LONGEST_HINT: Final = 300


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True):
    """What a kubeconfig says of a plugin."""

    command: str = ""
    version: str = msgspec.field(name="apiVersion", default="")
    args: tuple[str, ...] | None = None
    env: tuple[_Variable, ...] | None = None
    hint: str | None = msgspec.field(name="installHint", default=None)
    mode: Literal["", "Never", "IfAvailable", "Always"] | None = msgspec.field(name="interactiveMode", default=None)
    wants_cluster: bool | None = msgspec.field(name="provideClusterInfo", default=None)


class ExecPlugin:
    """A plugin, which is asked by calling it; one call at a time."""

    def __init__(self, wanted: Exec, *, directory: Path, cluster: dict[str, Any]) -> None:
        """
        Take what a kubeconfig in *directory* says of a plugin; *cluster* is what it is told of that, if it wants to be.

        Raises:
            CredentialError: If it says too little, or what kubectl does not know either.
        """
        if not wanted.command:
            raise CredentialError("a credential plugin must have a command: correct the kubeconfig")
        if wanted.version not in _VERSIONS:
            expected = " or ".join(_VERSIONS)
            raise CredentialError(
                f"{_named(wanted)} must have the apiVersion {expected}: update it, and the kubeconfig"
            )
        self._wanted = wanted
        self._command = str(directory / wanted.command) if os.sep in wanted.command else wanted.command
        self._cluster = {"cluster": cluster} if wanted.wants_cluster else {}
        self._is_first = True

    def __call__(self) -> Credential:
        """
        Ask the plugin.

        Raises:
            CredentialError: If it fails, or gives nothing that can be shown.
        """
        is_first, self._is_first = self._is_first, False
        answer = self._run(is_interactive=self._is_interactive(is_first=is_first), is_first=is_first)
        try:
            return _credential(self._checked(answer))
        except (config.ConfigException, msgspec.MsgspecError, ValueError, RecursionError) as error:  # shows no value
            raise CredentialError(f"{_named(self._wanted)} gave no valid ExecCredential: {error}") from None

    def _is_interactive(self, *, is_first: bool) -> bool:
        """Whether somebody can be asked: afterwards the terminal is that of a view."""
        can_be = is_first and is_terminal(sys.stdin)
        if self._wanted.mode == "Always" and not can_be:
            raise CredentialError(f"{_named(self._wanted)} asks somebody at a terminal: start the command anew in one")
        return can_be and self._wanted.mode != "Never"

    def _run(self, *, is_interactive: bool, is_first: bool) -> bytes:
        told = {"interactive": is_interactive, **self._cluster}
        info = {"apiVersion": self._wanted.version, "kind": "ExecCredential", "spec": told}
        own = {one.name: one.value for one in self._wanted.env or ()}
        try:
            return output_of(
                [_found(self._command), *(self._wanted.args or ())],
                env=os.environ | own | {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()},
                stdin=None if is_interactive else DEVNULL,
                is_attended=is_first,  # the mode is about its input alone
                within_seconds=_FIRST_SECONDS if is_first else _LATER_SECONDS,
            )
        except ProcessError as error:
            raise CredentialError(f"{_named(self._wanted)} {error}: run it by hand, or sign in again") from None
        except (OSError, ValueError) as error:  # a NUL in an argument is a ValueError
            why = getattr(error, "strerror", None) or "invalid arguments"
            hint = printable(self._wanted.hint or "")[:_LONGEST_HINT] or "install it, or correct the kubeconfig"
            raise CredentialError(f"{_named(self._wanted)} cannot be started: {why}: {hint}") from None

    def _checked(self, content: bytes) -> Status:
        answer = read_answer(content)
        if (answer.version, answer.kind) != (self._wanted.version, "ExecCredential"):
            raise ValueError(f"expected kind ExecCredential of {self._wanted.version}")
        found = answer.status or Status()
        if bool(found.certificate) != bool(found.key):
            raise ValueError("expected a certificate with its key, got one of them")
        if not (found.token or found.certificate):
            raise ValueError("expected a token or a certificate, got neither")
        return found


def _found(command: str) -> str:
    """Find it by the PATH of the user, not by that in the kubeconfig, and nowhere in the current directory."""
    found = command if os.sep in command else shutil.which(command)
    if not (found and Path(found).is_absolute()):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
    return found


def _named(wanted: Exec) -> str:
    return f"the credential plugin {printable(wanted.command)[:200]}"


def _credential(found: Status) -> Credential:
    pair = f"{found.certificate}\n{found.key}\n".encode() if found.certificate else b""
    end = _time(found.expires) if found.expires else float("inf")
    return Credential(
        authorization=bearer(found.token) if found.token else "",
        certificate=pair,
        due=end - _EARLY_SECONDS,
        end=end,
    )


def _time(text: str) -> float:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
