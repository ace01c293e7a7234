"""What asks for attention: GPUs, nodes and pods with something wrong, denials, and what cannot be seen."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

import msgspec

from console.page.filters import Filters
from console.top.rows import Top
from console.top.summary import denied, fault, pod_trouble

MOST: Final = 50  # shown at a time


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence."""

    sign: Literal["✗", "!", "?"]  # wrong, odd, not seen
    says: str
    namespace: str = ""
    name: str = ""  # of what `explain` explains, if that helps


def troubles(shown: Top, filters: Filters, now: datetime) -> tuple[Trouble, ...]:
    """List what is wrong in view, the worst first."""
    found = [*_of_nodes(shown, filters, now), *_of_pods(shown, filters, now), *_unseen(shown)]
    return tuple(sorted(found, key=lambda one: "✗!?".index(one.sign)))


def _of_nodes(shown: Top, filters: Filters, now: datetime) -> Iterator[Trouble]:
    for node in shown.nodes:
        if filters.node and node.name != filters.node:
            continue
        for gpu in node.gpus:
            for one in gpu.faults:
                yield Trouble(sign="✗", says=f"{node.name}: {fault(gpu, one, now)}")
        if node.trouble:
            yield Trouble(sign="!", says=f"{node.name}: {node.trouble}")
        for resource, why in node.not_advertised.items():
            of = resource or "GPUs that DRA allocates"
            yield Trouble(sign="!", says=f"{node.name}: Kubernetes has none of its {of} to give: {why}")
        if node.ready is False:
            yield Trouble(sign="✗", says=f"{node.name} is not Ready")


def _of_pods(shown: Top, filters: Filters, now: datetime) -> Iterator[Trouble]:
    for pod in {(row.namespace, row.pod): row for row in shown.pods if filters.shows(row)}.values():
        if said := pod_trouble(pod):
            sign: Literal["✗", "!"] = "✗" if pod.phase == "Failed" else "!"
            yield Trouble(sign=sign, says=said, namespace=pod.namespace, name=pod.pod)
    for one in shown.denied:
        if filters.namespace in ("", one.namespace):
            name = f"{one.kind.lower()}/{one.name}"
            yield Trouble(sign="✗", says=denied(one, now), namespace=one.namespace, name=name)


def _unseen(shown: Top) -> Iterator[Trouble]:
    for one in shown.unseen:
        yield Trouble(sign="?", says=f"not seen: {one.sentence}")
