"""The command, called in this process."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from gpu_share import main

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    gpu-share: "0.2"
spec:
  containers:
  - name: main
    image: tensorflow/serving
"""


def run(*arguments: str | Path, given: str | bytes | None = None, code: int | None = 0) -> Result:
    """Run `gpu-share` and check its exit code; no line of a traceback is ever shown."""
    result = CliRunner().invoke(main, [str(one) for one in arguments], input=given)
    assert code in (None, result.exit_code), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def preview(text: str | bytes, *options: str | Path, code: int = 0) -> Result:
    return run("preview", "-", *options, given=text, code=code)


def unreadable(text: str | bytes, *options: str | Path) -> str:
    """The one line on stderr of an input that cannot be read."""
    result = preview(text, *options, code=2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("gpu-share: ")
    return line


def patch(text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(preview(text, "-o", "patch").stdout)
    return made
