"""`gpu-share doctor`: look, judge, and say it."""

import sys
from typing import Final, Literal

import msgspec
from rich.console import Console

from console.api_server import ApiServer, ForeignError, UnseenError, decoded
from console.doctor.inspection import inspect
from console.doctor.report import AFTER, BEFORE, clock_note, findings, has_failed, lines, saw_nothing
from console.lines import print_lines
from console.objects import Object
from program.front import FAILED, failed

_NOBODY: Final = (0, 401)  # HTTP status: no answer, or none to this user
_MISSING: Final = (
    "gpu-share is not installed in this cluster, {}: gpu-share doctor --pre says what it needs, and docs/install.md how"
)


def run(api: ApiServer, *, pre: bool, output: Literal["text", "json"]) -> int:
    """
    Make all checks, or with *pre* those before an installation.

    Returns:
        0, or 1 if a check failed, the API server answers nothing that can be judged, or there is nothing to check.
    """
    if nobody := _nobody(api):
        return failed("doctor", nobody, FAILED)
    cluster = f"{api.context} at {api.address}" if api.context else api.address
    on = inspect(api, pre=pre)
    if on.is_missing and output == "text":
        return failed("doctor", _MISSING.format(cluster), FAILED)
    found = findings(on, BEFORE if pre else AFTER)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found, enc_hook=str)).decode() + "\n")
    else:
        print_lines(Console(highlight=False), lines(found, cluster=cluster, clock=clock_note(on.seen)))
    return FAILED if has_failed(found) or saw_nothing(found) else 0


def _nobody(api: ApiServer) -> str:
    """Say why no API server answers; empty if one does, or may."""
    try:
        content = api.get("/version")
    except ForeignError as error:
        return f"expected an API server at {api.address}, got {error}"
    except UnseenError as error:  # an API server that says why may answer other questions
        return str(error) if error.status in _NOBODY else ""
    try:
        decoded(Object, content)
    except UnseenError as error:
        return f"expected an API server at {api.address}: {error}"
    return ""
