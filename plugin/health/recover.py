"""`gpu-share plugin recover`: an administrator ends faults that nothing else can end, and says why."""

import os
import pwd
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from plugin.health import recovery_request
from plugin.health.recovery_request import RecoveryRequest
from plugin.health.running import NotRunningError, running
from plugin.health.state import FaultName, GpuHealth, Recovery, read_node_health
from plugin.health.words import safe
from plugin.state_files import boot_id, boot_seconds

_CLEARED = 0
_REFUSED = 1
_NOBODY = 2  # no plugin, no such GPU, or no right to ask

_LONGEST_REASON = 200
_POLL_SECONDS = 0.05


class _NotAskedError(Exception):
    """Nothing was asked of the plugin; the message says why, and what to do."""


def recover(state_dir: Path, gpu: str, *, reason: str, within_seconds: float | None = None) -> int:
    """
    Ask the plugin that runs to end the faults of *gpu*, and print what has come of it.

    Returns:
        0 if faults were ended, 1 if the plugin refuses or does not answer, 2 if it was not asked; standard error then
        says why in one line.
    """
    try:
        asked = _ask(state_dir, gpu, reason=reason)
    except (NotRunningError, _NotAskedError) as error:
        return _fail(str(error), _NOBODY)
    limit_seconds = recovery_request.TAKEN_WITHIN_SECONDS if within_seconds is None else within_seconds
    answered = _answer(state_dir, asked, within_seconds=limit_seconds)
    if answered is None:
        recovery_request.withdraw(state_dir)
        return _fail(f"the plugin has not answered within {limit_seconds:.0f} s: see its log, and try again", _REFUSED)
    health, recovery = answered
    name = f"GPU {health.index} {safe(health.uuid)}"
    if recovery.refused:
        return _fail(f"{name}: nothing was cleared: {safe(recovery.refused)}", _REFUSED)
    now = "healthy" if health.healthy else f"still unhealthy: {'; '.join(safe(one.why) for one in health.faults)}"
    sys.stdout.write(f"{name}: cleared: {'; '.join(map(safe, recovery.cleared))}; it is {now}\n")
    return _CLEARED


def chosen(gpus: Sequence[GpuHealth], text: str) -> GpuHealth:
    """
    Find the GPU that *text* names: by UUID, by NVML's number, or by the beginning of a UUID.

    That can be digits too: those of a number that there is not, or several that do not fit a number as well.

    Raises:
        LookupError: If it names none or several.
    """
    begins = text.lower().removeprefix("gpu-")
    found = [gpu for gpu in gpus if begins and gpu.uuid.lower().removeprefix("gpu-").startswith(begins)]
    found = [gpu for gpu in found if gpu.uuid.lower() == text.lower()] or found
    numbered = [gpu for gpu in gpus if str(gpu.index) == text]
    # Of eight GPUs one in three shares its number with the first digit of another's UUID, and nobody means that.
    one_digit = numbered and len(text) == 1
    found = numbered if one_digit else [gpu for gpu in gpus if gpu in found or gpu in numbered]
    if len(found) == 1:
        return found[0]
    have = ", ".join(f"{gpu.index} {safe(gpu.uuid)}" for gpu in found or gpus) or "none"
    ambiguous = " is ambiguous" if found else ""
    raise LookupError(f"{safe(text)!r}{ambiguous}: expected the number or UUID of one GPU, of: {have}")


def _ask(state_dir: Path, gpu: str, *, reason: str) -> RecoveryRequest:
    reason = " ".join(reason.split())
    if not reason or len(reason) > _LONGEST_REASON:
        raise _NotAskedError(f"--reason: expected 1 to {_LONGEST_REASON} characters, got {len(reason)}")
    node, _ = running(state_dir)
    if node.waiting:
        raise _NotAskedError(f"no GPU is shared yet: {safe(node.waiting.why)}")
    try:
        health = chosen(node.gpus, gpu)
    except LookupError as error:
        raise _NotAskedError(str(error)) from None
    request = RecoveryRequest(
        id=uuid4().hex,
        boot_id=boot_id(),
        asked_seconds=boot_seconds(),
        gpu_uuid=health.uuid,
        faults=tuple(FaultName.of(fault) for fault in health.faults),
        reason=_written(reason),
        by=_written(_who()),
    )
    try:
        recovery_request.submit(state_dir, request)
    except PermissionError:
        raise _NotAskedError(f"--state-dir {state_dir}: this user may not write there: run this as root") from None
    except OSError as error:
        raise _NotAskedError(f"--state-dir {state_dir}: cannot be written to: {error.strerror}") from None
    return request


def _answer(state_dir: Path, request: RecoveryRequest, *, within_seconds: float) -> tuple[GpuHealth, Recovery] | None:
    deadline = time.monotonic() + within_seconds
    while True:
        node = read_node_health(state_dir)
        for gpu in node.gpus if node else ():
            if gpu.recovery and gpu.recovery.id == request.id:
                return gpu, gpu.recovery
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)


def _who() -> str:
    """Name who asks; in a container that is root, and the cluster's audit log knows more."""
    name = f"user {os.getuid()}"
    with suppress(KeyError):
        name = pwd.getpwuid(os.getuid()).pw_name
    behind = os.environ.get("SUDO_USER", "")
    return f"{name} (sudo by {behind})" if behind else name


def _written(text: str) -> str:
    """Put a question mark where a terminal or a variable has something else than UTF-8."""
    return text.encode(errors="replace").decode()


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"gpu-share plugin recover: {message}\n")
    return code
