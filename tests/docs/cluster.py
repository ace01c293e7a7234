"""What the commands of the view show of a cluster, in docs/commands.md."""

import io
import re
from datetime import UTC, datetime

import msgspec
from rich.console import Console

from console.doctor.report import AFTER, findings, lines
from console.look import seen_pod
from console.objects import Node, Pod
from console.seen import Seen
from console.seen_nodes import seen_nodes
from console.top.drawing import draw
from console.top.rows import top as rows
from console.words import as_shown
from policies.node_state import Use
from tests.console.installations import fragmented
from tests.console.objects import GIB, failed_gpu, gpu, node, pending, pod, state, tenant


def top() -> str:
    uses = (Use(memory_bytes=21 * GIB, sm_ratio=0.18, processes=1), Use(memory_bytes=40 * GIB, processes=2))
    vision, language = tenant("resnet-0", 2, use=uses[0]), tenant("bert-0", 5, namespace="team-language", use=uses[1])
    said = state(gpu(vision, language), failed_gpu(tenant("resnet-1", 4)))
    waits = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."
    pods = (
        pod("resnet-0"),
        pod("resnet-1", "0.4"),
        pod("bert-0", "0.5", namespace="team-language"),
        pending("late", "0.5", waits),
    )
    seen = Seen(
        context="production",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        nodes=seen_nodes([msgspec.convert(node(), Node, dec_hook=as_shown)], {"gpu-a": said}),
        pods=tuple(seen_pod(msgspec.convert(one, Pod, dec_hook=as_shown)) for one in pods),
    )
    drawn = io.StringIO()
    Console(file=drawn, width=118, highlight=False).print(draw(rows(seen), wide=False))
    lines = [line.rstrip() for line in re.sub(r"\d\d:\d\d:\d\d UTC", "10:24:07 UTC", drawn.getvalue()).splitlines()]
    return "\n".join(["```", "$ gpu-share top --once", *lines, "```"])


def doctor() -> str:
    on = fragmented()
    drawn = io.StringIO()
    console = Console(file=drawn, width=125, highlight=False)
    for line in lines(findings(on, AFTER), cluster="production at https://production.example:6443"):
        console.print(line, soft_wrap=True)
    shown = [line.rstrip() for line in drawn.getvalue().splitlines()]
    return "\n".join(["```", "$ gpu-share doctor", *shown, "```"])
