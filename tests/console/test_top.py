"""What `gpu-share top` says of a cluster, as JSON and as a picture."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from rich.console import Console

from console.api_server import ApiServer
from console.look import look
from console.seen import Seen
from console.top.drawing import bar, draw
from console.top.rows import top
from policies.node_state import Ages, Gpu, Use
from policies.outsiders import OfNode, Outsider
from tests.console.objects import (
    GIB,
    cluster,
    denial,
    failed_gpu,
    gpu,
    node,
    pending,
    pod,
    state,
    tenant,
)
from tests.console.stand_in import StandIn

Shown = Callable[..., Any]
Asked = Callable[..., Result]
MEASURED = Use(memory_bytes=3 * GIB, sm_ratio=0.25, processes=1)
TENANTS = (tenant("resnet-0", 2, use=MEASURED), tenant("bert-0", 5, namespace="team-language"))


def busy() -> StandIn:
    """One node: a GPU with two tenants, one unhealthy, a pod that waits and a controller whose pods are denied."""
    pods = (
        pod("resnet-0"),
        pod("bert-0", "0.5", namespace="team-language"),
        pending("late", "0.6", "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."),
    )
    events = (denial('admission webhook "pods.gpu-share.dev" denied the request: Container "main" asks for 0.8'),)
    return cluster(state(gpu(*TENANTS, hidden=1), failed_gpu()), pods=pods, events=events)


def test_a_picture_has_gpus_tenants_pods_and_reasons(asked: Asked) -> None:
    ran = asked(busy(), "top", "--once")
    assert ran.exit_code == 0, ran.output
    text = ran.stdout
    for expected in (
        "1 node, 2 GPUs, 1 unhealthy, largest share that fits: 0.2",
        "GPU 0  NVIDIA H200  AAAAAABBBBBBBBBBBBBBB▒▒▒░░░░░░  healthy    0.2 free  0.1 hidden  largest 0.2",
        "UNHEALTHY  0 free",
        "✗ GPU 1: the driver reported XID 79 (for 3 min)",
        "! team-vision/late is Pending: 0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu.",
        '✗ team-vision/ReplicaSet/resnet-5d: denied 9 times, last 1 min ago: admission webhook "pods.gpu-share.dev"',
    ):
        assert expected in text, text
    (row,) = (line.split() for line in text.splitlines() if " resnet-0 " in line)
    assert row == [
        "A",
        "team-vision",
        "resnet-0",
        "main",
        "0.2",
        "28.0",
        "GiB",
        "3.0",
        "GiB",
        "25%",
        "5",
        "min",
        "Running",
    ]
    (row,) = (line.split() for line in text.splitlines() if " bert-0 " in line)
    assert row[4:] == ["0.5", "70.0", "GiB", "-", "-", "5", "min", "Running"]


def test_a_single_denial_is_one_time(asked: Asked) -> None:
    on = busy()
    on.lists["/api/v1/events"][0]["count"] = 1
    assert "resnet-5d: denied 1 time, last 1 min ago: " in asked(on, "top", "--once").stdout


def test_wide_adds_uuids_and_where_pods_are(asked: Asked) -> None:
    text = asked(busy(), "top", "--once", "-o", "wide").stdout
    assert "GPU-0" in text
    assert "NODE" in text
    assert "THREADS" in text


def test_what_was_granted_by_hand_to_containers_that_are_not_there_is_no_row(shown: Shown) -> None:
    made = pending("late", "0.6", "")
    grant = json.loads(made["metadata"]["annotations"]["gpu-share.dev/grant"])
    grant["containers"] |= {f"c{index}": {"share": "1"} for index in range(1000)}
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant)
    assert [one["container"] for one in shown(cluster(state(gpu()), pods=(made,)), "top")["pods"]] == ["main"]


def test_a_figure_that_nobody_knows_is_null_and_not_0(shown: Shown) -> None:
    told = shown(busy(), "top")
    rows = {one["pod"]: one for one in told["pods"]}
    assert rows["resnet-0"]["memory_used_bytes"] == 3 * GIB
    assert rows["bert-0"]["memory_used_bytes"] is rows["bert-0"]["sm_ratio"] is rows["bert-0"]["processes"] is None
    assert rows["late"]["memory_limit_bytes"] is None


def test_nothing_is_added_up_of_which_a_part_is_not_known(shown: Shown) -> None:
    two = (gpu(tenant("both", 5, use=MEASURED)), gpu(tenant("both", 5), index=1))
    (row,) = shown(cluster(state(*two), pods=(pod("both", "1"),)), "top")["pods"]
    assert (row["gpus"], row["memory_limit_bytes"], row["memory_used_bytes"]) == (["GPU-0", "GPU-1"], 140 * GIB, None)


def test_a_tenant_whose_pod_cannot_be_seen_is_shown_as_its_node_knows_it(shown: Shown) -> None:
    known = busy()
    known.lists["/api/v1/pods"] = []
    rows = {one["pod"]: one for one in shown(known, "top")["pods"]}
    assert (rows["bert-0"]["share"], rows["bert-0"]["phase"], rows["bert-0"]["node"]) == ("0.5", None, "gpu-a")


def test_one_namespace_has_its_pods_and_all_of_the_gpus(shown: Shown) -> None:
    known = busy()
    known.lists["/api/v1/namespaces/team-vision/pods"] = [pod("resnet-0")]
    told = shown(known, "top", "-n", "team-vision")
    assert [one["pod"] for one in told["pods"]] == ["resnet-0"]
    assert [one["pod"] for one in told["nodes"][0]["gpus"][0]["tenants"]] == ["resnet-0", "bert-0"]


def test_one_node_has_its_pods_and_those_that_have_none(shown: Shown) -> None:
    known = cluster(
        state(gpu(), on="gpu-a"), state(gpu(), on="gpu-b"), pods=(pod("a", on="gpu-a"), pod("b", on="gpu-b"))
    )
    known.lists["/api/v1/pods"].append(pending("late", "0.6", "no"))
    told = shown(known, "top", "--node", "gpu-b")
    assert [one["name"] for one in told["nodes"]] == ["gpu-b"]
    assert [one["pod"] for one in told["pods"]] == ["b", "late"]


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        (state(gpu(), ages=Ages(health=95.0)), "silent for 95 s"),
        (state(gpu(), ages=Ages()), "has not said yet how the GPUs are"),
        (state(waiting="the driver is not loaded"), "no GPU is shared yet: the driver is not loaded"),
    ],
)
def test_what_a_node_does_not_know_now_is_not_called_healthy(asked: Asked, said: Any, trouble: str) -> None:
    text = asked(cluster(said), "top", "--once").stdout
    assert trouble in text
    assert "healthy" not in text


def test_who_uses_a_gpu_without_a_share_is_said_below_it_with_what_to_do(asked: Asked) -> None:
    hog = Outsider(namespace="team-b", pod="hog", container="main", processes=1, memory_bytes=3 * GIB)
    said = state(gpu(index=1, outsiders=(hog,), of_node=OfNode(processes=2)))
    text = " ".join(asked(cluster(said), "top", "--once").stdout.split())
    assert "! GPU 1 is used without a share: team-b/hog/main has 1 process with 3.0 GiB: delete its pod, " in text
    assert "! GPU 1 is used without a share: the node itself has 2 processes: nvidia-smi names them " in text


def test_a_node_that_has_no_part_says_so(asked: Asked) -> None:
    known = cluster(state(gpu()))
    known.lists["/api/v1/nodes"].append(node("gpu-new"))
    assert "no part of gpu-share runs there" in asked(known, "top", "--once").stdout


def test_what_cannot_be_seen_is_said_with_the_right_by_which_it_could(asked: Asked) -> None:
    known = busy()
    known.forbidden = {"pods/proxy", "events"}
    ran = asked(known, "top", "--once")
    assert ran.exit_code == 0
    assert "? not seen: denied pods: events is forbidden" in ran.stdout
    assert "the right to list events is missing" in ran.stdout
    assert "the right to get pods/proxy in namespace gpu-share is missing" in ran.stdout


def test_a_cluster_of_which_nothing_is_seen_is_a_failure(asked: Asked) -> None:
    known = busy()
    known.forbidden = {"nodes", "pods", "events"}
    assert asked(known, "top", "--once").exit_code == 1


def test_an_api_server_that_is_not_there_is_one_sentence(asked: Asked) -> None:
    ran = asked(busy(), "top", "--once", "--context", "nowhere")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("gpu-share top: no answer from http://127.0.0.1:1: ")
    assert ran.stderr.count("\n") == 1


def test_a_container_that_crashes_in_a_pod_that_runs_is_told(asked: Asked) -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    known = cluster(state(gpu()), pods=(pod("p", containerStatuses=[{"name": "main", "state": waiting}]),))
    assert "! team-vision/p is Running: CrashLoopBackOff: back-off 5m0s" in asked(known, "top", "--once").stdout


def test_no_name_writes_on_the_terminal(asked: Asked) -> None:
    hostile = "\u001b]0;x\u0007[red]\u202e"
    known = busy()
    known.lists["/api/v1/pods"].append(pod("p", phase=hostile, reason=hostile, message=hostile))
    known.lists["/api/v1/events"].append(denial(f"gpu-share {hostile}", name=hostile))
    text = asked(known, "top", "--once").stdout
    assert "[red]" in text
    assert not set(text) & set("\u001b\u0007\u202e")


@pytest.mark.parametrize("parts", [3, 7, 10, 100, 1000])
def test_a_bar_is_as_wide_for_any_number_of_parts(parts: int) -> None:
    owners = {("team-vision", f"p-{number}"): number for number in range(3)}
    held = tuple(tenant(f"p-{number}", 1) for number in range(3))
    assert len(bar(gpu(*held, parts=parts), owners)) == 30


def test_an_unknown_occupancy_is_not_drawn_as_free() -> None:
    drawn = io.StringIO()
    Console(file=drawn).print(bar(Gpu(uuid="GPU-0", index=0, healthy=True, parts=10), {}))
    assert set(drawn.getvalue().strip()) == {"·"}


def narrow(seen: Seen, columns: int, *, wide: bool = False) -> list[str]:
    """Draw a cluster in a terminal that is so many columns wide."""
    drawn = io.StringIO()
    Console(file=drawn, width=columns).print(draw(top(seen, node=""), wide=wide))
    return [line.rstrip() for line in drawn.getvalue().splitlines()]


def test_in_80_columns_bars_and_letters_are_whole_and_names_give_way(
    connected: Callable[[StandIn], ApiServer],
) -> None:
    lines = narrow(look(connected(busy())), 80)
    assert "GPU 0  NVIDIA H200  AABBBBBB▒░░░  healthy    0.2 free  0.1 hidden  largest 0.2" in lines
    assert " B   team-l…  bert-0    main     0.5    70.0 GiB  -        -    5 min  Running" in lines


@pytest.mark.parametrize(("columns", "wide"), [(40, False), (80, True)])
def test_a_terminal_that_is_too_narrow_shows_the_left_part(
    columns: int,
    wide: bool,  # noqa: FBT001 - of a table
    connected: Callable[[StandIn], ApiServer],
) -> None:
    seen = look(connected(busy()))
    whole = narrow(seen, 160 if wide else 80, wide=wide)
    (bars, pods) = (
        [line for line in narrow(seen, columns, wide=wide) if begin in line] for begin in ("GPU 0  ", " A   team")
    )
    assert bars == [line[:columns].rstrip() for line in whole if "GPU 0  " in line]
    assert pods == [line[:columns].rstrip() for line in whole if " A   team" in line]
