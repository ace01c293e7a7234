"""`gpu-share explain` of what has made very many pods, or of one pod among them: what it asks for, keeps and says."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from console.api_server import ApiServer
from console.explain.finding import find
from tests.console.explained import OURS, Asked, explain, known, only, owned
from tests.console.objects import ago, failed_gpu, gpu, pending, pod, state, tenant
from tests.console.stand_in import Object, StandIn

_DEPLOYMENT = "apps/v1/namespaces/team-vision/deployments/resnet"
_WAITS = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."


def made(one: Object, *, revision: str = "", created: str = "") -> Object:
    """A pod of the Deployment."""
    one["metadata"]["labels"]["pod-template-hash"] = revision
    one["metadata"]["creationTimestamp"] = created or one["metadata"]["creationTimestamp"]
    return owned(one, "ReplicaSet", "resnet-5d")


def failed(name: str, reason: str = "UnexpectedAdmissionError", free: str = "3 and 1", **of: Any) -> Object:
    message = f"4 vGPUs must lie on one GPU, got {free}"
    return made(pod(name, phase="Failed", reason=reason, message=message), **of)


def crowd(*pods: Object, **more: Any) -> StandIn:
    on = known(*pods, **more)
    only(on, _DEPLOYMENT)
    return on


def pods_of(text: str) -> list[str]:
    return [line.removeprefix("Pod team-vision/") for line in text.splitlines() if line.startswith("Pod ")]


def test_pods_that_are_alike_are_explained_once_and_those_with_trouble_first(asked: Asked) -> None:
    runs = (made(pod(f"a-{n}")) for n in range(2))
    waits = made(pending("b-0", "0.4", _WAITS))
    on = crowd(*runs, waits, *(failed(f"c-{n:03}", free=f"{n} and 1") for n in range(550)))
    text = explain(asked, on, "deploy/resnet")
    assert text.startswith(
        "Deployment team-vision/resnet: 553 pods\n"
        "  Pods\n"
        "    3 of 553 explained: one of each state and revision, those with trouble first\n"
        "    for any other one: gpu-share explain POD -n team-vision\n"
        "\n"
    )
    assert pods_of(text) == [
        "c-000: Failed on gpu-a, created 5 min ago, and 549 more like it",
        "b-0: Pending for 5 min",
        "a-0: Running on gpu-a for 5 min, and 1 more like it",
    ]
    assert text.count("what to do: no one GPU had that many vGPUs free") == 1
    assert len(on.asked) < 20, on.asked


@pytest.mark.parametrize("count", [2, 20])
def test_few_pods_are_all_explained_in_their_order_by_policies_that_are_read_once(asked: Asked, count: int) -> None:
    on = crowd(*(made(pod(f"a-{n:02}")) for n in range(count - 1)), failed("b"))
    text = explain(asked, on, "deploy/resnet")
    assert pods_of(text) == [
        *(f"a-{n:02}: Running on gpu-a for 5 min" for n in range(count - 1)),
        "b: Failed on gpu-a, created 5 min ago",
    ]
    for path in ("/api/v1/namespaces/gpu-share/configmaps", OURS, f"{OURS}/pods"):
        assert on.asked.count(path) == 1, path


def test_of_pods_in_very_many_states_the_first_are_explained_and_the_others_counted(asked: Asked) -> None:
    on = crowd(*(failed(f"c-{n:03}", f"Reason{n % 60}") for n in range(100)))
    text = explain(asked, on, "deploy/resnet")
    assert pods_of(text) == [f"c-{n:03}: Failed on gpu-a, created 5 min ago, and 1 more like it" for n in range(20)]
    assert "    20 of 100 explained: " in text
    assert "\n    60 pods in further states or revisions left out\n" in text
    assert len(on.asked) < 40, on.asked


def test_what_has_trouble_is_explained_though_it_comes_after_many_that_run_well(asked: Asked) -> None:
    well = (made(pod(f"a-{n:03}", str((n + 1) / 100)), revision=str(n)) for n in range(60))
    on = crowd(*well, made(pod("on-a-bad-gpu")), state=state(gpu(), failed_gpu(tenant("on-a-bad-gpu", 2))))
    first, *others = pods_of(explain(asked, on, "deploy/resnet"))
    assert first == "on-a-bad-gpu: Running on gpu-a for 5 min"
    assert len(others) == 19


def test_pods_of_another_revision_are_explained_beside_those_of_the_first(asked: Asked) -> None:
    on = crowd(*(made(pod(f"a-{n:02}"), revision="old" if n < 25 else "new") for n in range(30)))
    assert pods_of(explain(asked, on, "deploy/resnet")) == [
        "a-00: Running on gpu-a for 5 min, and 24 more like it",
        "a-25: Running on gpu-a for 5 min, and 4 more like it",
    ]


def test_the_pod_that_failed_last_and_the_one_that_waits_longest_stand_for_the_others(asked: Asked) -> None:
    fails = (failed(f"a-{n:02}", created=ago(minutes=9 if n != 7 else 1)) for n in range(15))
    waits = (made(pending(f"b-{n:02}", "0.4", _WAITS), created=ago(minutes=1 if n != 7 else 9)) for n in range(15))
    assert pods_of(explain(asked, crowd(*fails, *waits), "deploy/resnet")) == [
        "a-07: Failed on gpu-a, created 1 min ago, and 14 more like it",
        "b-07: Pending for 9 min, and 14 more like it",
    ]


def test_programs_are_told_the_same(shown: Callable[..., Any]) -> None:
    on = crowd(*(made(pod(f"a-{n:02}")) for n in range(30)))
    about, one = shown(on, "explain", "-n", "team-vision", "deploy/resnet")
    assert (about["title"], about["sections"][0]["title"]) == ("Deployment team-vision/resnet: 30 pods", "Pods")
    assert one["title"].endswith(", and 29 more like it")


def test_classes_of_sizes_are_read_once_for_all_pods_that_wait(asked: Asked) -> None:
    waits = [made(pending(f"b-{n}", "0.4", _WAITS)) for n in range(5)]
    for one in waits:
        grant = {"policy": "team-vision", "strategy": "mps", "allocation": "dra", "containers": {}}
        one["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant)
    on = crowd(*waits)
    explain(asked, on, "deploy/resnet")
    assert on.asked.count("/apis/resource.k8s.io/v1/deviceclasses") == 1


@pytest.mark.parametrize("name", ["resnet-0", "pod/resnet-0"])
def test_one_pod_is_asked_for_by_its_name_however_many_are_beside_it(asked: Asked, name: str) -> None:
    on = known(*(pod(f"other-{n}") for n in range(50)), pod("resnet-0"))
    on.page = 5
    assert pods_of(explain(asked, on, name)) == ["resnet-0: Running on gpu-a for 5 min"]
    assert on.asked.count(f"{OURS}/pods") == 1


def test_of_very_many_pods_few_are_kept(connected: Callable[[StandIn], ApiServer]) -> None:
    many = [made(pod(f"a-{n:03}")) for n in range(500)]
    for one in many:
        one["metadata"]["annotations"]["filler"] = "x" * 100_000
    on = crowd(*many)
    on.page = 10
    api = connected(on)
    tracemalloc.start()
    try:
        answer = find(api, "deploy/resnet", "team-vision")
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [one.alike for one in answer.subjects] == [499]
    assert most_bytes < 25_000_000  # and all of them are 50 MB as text alone
