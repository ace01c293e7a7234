"""`gpu-share top`: once or live, as a picture or as JSON."""

import sys
import time
from functools import partial
from itertools import chain, count
from typing import Literal

import msgspec
from rich.console import Console

from console.api_server import ApiServer
from console.look import look
from console.seen import ALL_NODES, DENIED_PODS, OUR_PODS, Seen, Unseen
from console.top.drawing import draw
from console.top.live import live
from console.top.rows import Top, top
from console.top.screen import Screen
from console.words import Shown
from program.front import FAILED, failed

Output = Literal["text", "wide", "json"]


def run(api: ApiServer, *, namespace: str, node: str, output: Output, every_seconds: float | None) -> int:
    """
    Show the cluster: once, or anew *every_seconds*, less often where a look takes long, until it is interrupted.

    Returns:
        0, or 1 if nothing at all could be seen, or of *node*, where it is named, nobody knows who holds what.
    """
    wide, is_terminal, see = output == "wide", sys.stdout.isatty(), partial(look, api, namespace=Shown(namespace))
    # Without a terminal nothing is cut to a width that nobody has.
    console = Console(highlight=False, width=None if is_terminal else 4096)
    is_live = is_terminal and output != "json" and not console.is_dumb_terminal
    live_seconds = every_seconds if is_live else None
    began = time.monotonic()
    seen = see()
    # What is asked anew may be seen the next time, and JSON says itself what is unseen.
    nothing = "" if live_seconds is not None or output == "json" else _why_nothing(seen)
    if why := nothing or _why_unknown(seen, node):
        return failed("top", why, FAILED)
    if live_seconds is not None:
        looks = chain([seen], (see() for _ in count()))
        pictures = (Screen(top(one, node=node), wide=wide) for one in looks)
        return live(console, pictures, began=began, every_seconds=live_seconds)
    shown = top(seen, node=node)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(shown, enc_hook=str)).decode() + "\n")
    else:
        console.print(draw(shown, wide=wide), soft_wrap=not is_terminal)
    return _code(seen, shown if node else None)


def _code(seen: Seen, of_node: Top | None = None) -> int:
    is_unknown = bool(of_node and of_node.silent_nodes)
    is_nothing = not (seen.nodes or seen.pods or seen.parts or seen.denials)
    return FAILED if is_unknown or (is_nothing and any(map(_hides_much, seen.unseen))) else 0


def _hides_much(hidden: Unseen) -> bool:
    """Whether more is hidden than of some pods that were denied whether they would have a share."""
    return not hidden.what.startswith(DENIED_PODS) or hidden.right.startswith("list events")


def _why_unknown(seen: Seen, node: str) -> str:
    """Say that there is no such node, or that nobody knows; empty if there is, or none was named."""
    if not node or any(one.name == node for one in seen.nodes):
        return ""
    hidden = seen.hidden(ALL_NODES) or seen.hidden(OUR_PODS)
    why = f"nobody knows whether it shares its GPUs: {hidden.sentence}" if hidden else "no such node shares its GPUs"
    return f"--node {Shown(node)}: {why}: without --node all that is seen is shown"


def _why_nothing(seen: Seen) -> str:
    """Give the one reason for which nothing can be seen; empty if there are more, or something was seen."""
    reasons = {one.why for one in seen.unseen}
    return reasons.pop() if _code(seen) == FAILED and len(reasons) == 1 else ""
