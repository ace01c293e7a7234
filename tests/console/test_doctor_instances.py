"""What `gpu-share doctor` says of MIG instances, of which no driver tells who uses them, and how much they take."""

from typing import Any

import pytest
from rich.console import Console

from console.doctor.installation import Installation
from console.doctor.report import AFTER, Finding, findings, lines
from policies.node_state import Gpu, Use
from policies.outsiders import Outsider
from tests.console.installations import installation, nodes, seen, with_node
from tests.console.objects import GIB, gpu, state, tenant

_UNTOLD = "of MIG instances no driver tells it"
_THIEF = Outsider(namespace="team-a", pod="b", container="c", processes=1)


def instance(index: int, parts: int = 2, **more: Any) -> Gpu:
    """A MIG instance, and a container that has so many parts of it."""
    return gpu(tenant(f"of-{index}", parts), index=index, uuid=f"MIG-{index}", outsiders=None, **more)


def used(**more: Any) -> Gpu:
    """A GPU of which all is known."""
    return gpu(tenant("a", 2, use=Use(memory_bytes=GIB)), index=9, **more)


def of_shares(on: Installation) -> list[Finding]:
    return [one for one in findings(on, AFTER) if one.check in ("within-share", "with-share")]


def test_where_all_gpus_are_instances_there_is_nothing_to_judge() -> None:
    found = [(one.status, one.found) for one in of_shares(with_node(instance(0), instance(1)))]
    assert found == [("not-applicable", (_UNTOLD,))] * 2


def test_instances_are_named_beside_what_is_known_of_gpus() -> None:
    both, one = state(instance(0), used(), instance(1), on="gpu-0"), state(instance(2), on="gpu-1")
    told = f"{_UNTOLD}: 2 on gpu-0, 1 on gpu-1"
    found = of_shares(installation(seen(**nodes(both, one))))
    assert [(one.status, one.found) for one in found] == [("ok", (told,))] * 2
    console = Console(width=200)
    with console.capture() as captured:
        console.print(*lines(found, cluster="here"), sep="\n")
    assert f"✓ containers keep to their share: {told}\n" in captured.get()


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ((instance(0), used(outsiders=(_THIEF,))), ("warning", "team-a/b/c has no share of GPU 9 on gpu-0")),
        ((instance(0), used(outsiders=None)), ("unknown", "who uses GPU 9 on gpu-0 without a share is not known")),
    ],
)
def test_instances_are_named_beside_what_is_wrong_with_gpus(gpus: tuple[Gpu, ...], said: tuple[str, str]) -> None:
    _, found = of_shares(with_node(*gpus))
    assert (found.status, found.found[0].startswith(said[1])) == (said[0], True)
    assert found.found[1:] == (f"{_UNTOLD}: 1 on gpu-0",)


def test_what_nothing_holds_to_its_share_of_an_instance_is_named() -> None:
    found, _ = of_shares(with_node(instance(0, strategy="time-slicing", limits_enforced_by="")))
    assert found.status == "warning"
    assert found.found[0].startswith("team-vision/of-0/main on gpu-0: time-slicing limits no memory")


@pytest.mark.parametrize("parts", [0, 10])
def test_who_has_all_of_an_instance_or_nothing_of_it_takes_no_more(parts: int) -> None:
    of = instance(0, parts) if parts else gpu(uuid="MIG-0", outsiders=None)
    assert [one.status for one in of_shares(with_node(of))] == ["ok", "not-applicable"]


def test_simulated_instances_are_as_simulated_gpus_are() -> None:
    assert [one.status for one in of_shares(with_node(instance(0), driver="simulated"))] == ["ok", "ok"]
