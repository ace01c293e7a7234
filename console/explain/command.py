"""`gpu-share explain`: find, explain, and say it."""

import sys
from typing import Literal

import msgspec
from rich.console import Console
from rich.text import Text

from console.api_server import ApiServer, UnseenError
from console.explain.finding import NotFoundError, find
from console.explain.sentences import explanations
from program.front import FAILED, failed


def run(api: ApiServer, name: str, *, namespace: str, output: Literal["text", "json"]) -> int:
    """
    Explain a pod, or the pods of an object.

    Returns:
        0, or 1 if there is no such thing, or it may not be read.
    """
    try:
        explained = explanations(find(api, name, namespace))
    except (NotFoundError, UnseenError) as error:
        return failed("explain", error, FAILED)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(explained, enc_hook=str)).decode() + "\n")
        return 0
    console = Console(highlight=False)
    for index, one in enumerate(explained):
        console.print(Text(f"{chr(10) * bool(index)}{one.title}", "bold"), soft_wrap=True)
        for section in one.sections:
            console.print(Text(f"  {section.title}", "cyan"))
            for line in section.lines:
                console.print(Text(f"    {line}"), soft_wrap=not console.is_terminal)
    return 0
