"""What `gpu-share preview` prints of a file, as data."""

from typing import Any

import yaml

from tests.webhook.commands import preview


def made(text: str, *options: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(preview(text, "-o", "yaml", *options).stdout)
    return document


def titles(text: str, *options: str, code: int = 0) -> dict[str, str]:
    lines = preview(text, *options, code=code).stdout.splitlines()
    pairs = [line.rsplit(": ", 1) for line in lines if line and not line.startswith((" ", "Policies: "))]
    return dict(pairs)
