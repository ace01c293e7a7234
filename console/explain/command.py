"""`gpu-share explain`: find, explain, and say it."""

import sys
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from rich.console import Console
from rich.text import Text

from console.api_server import ApiServer, UnseenError
from console.explain.finding import find
from console.explain.maker import NotFoundError
from console.explain.sentences import Explanation, explanations
from console.lines import print_lines
from console.words import Shown
from program.front import FAILED, failed


def run(api: ApiServer, name: str, *, namespace: str, output: Literal["text", "json"]) -> int:
    """
    Explain a pod, or the pods of an object.

    Returns:
        0, or 1 if there is no such thing, or it may not be read.
    """
    try:
        explained = explanations(find(api, name, Shown(namespace)))
    except (NotFoundError, UnseenError) as error:
        return failed("explain", error, FAILED)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(explained, enc_hook=str)).decode() + "\n")
        return 0
    print_lines(Console(highlight=False), _lines(explained))
    return 0


def _lines(explained: Iterable[Explanation]) -> Iterator[Text]:
    for index, one in enumerate(explained):
        yield from (Text() for _ in range(bool(index)))
        yield Text(one.title, "bold")
        for section in one.sections:
            yield Text(f"  {section.title}", "cyan")
            yield from (Text(f"    {line}") for line in section.lines)
