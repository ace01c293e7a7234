"""A kubectl that a test puts on the PATH."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, object]], None]:
    """Put a kubectl on the PATH that answers by a word of its call: with an object, or an error."""

    def put(answers: dict[str, object]) -> None:
        lines = ["#!/bin/sh", 'case "$*" in *current-context*) echo kind-a;;']
        for number, (name, answer) in enumerate(answers.items()):
            path = tmp_path / f"answer-{number}"
            path.write_text(answer if isinstance(answer, str) else json.dumps(answer))
            end = ">&2; exit 1" if isinstance(answer, str) else ""
            lines.append(f"*' {name} '*) /bin/cat {path} {end};;")
        script = tmp_path / "kubectl"
        script.write_text("\n".join([*lines, "esac", ""]))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put
