"""Whether `gpu-share doctor` says of what waits that no one GPU has room for it, and of nothing else."""

import json
from typing import Any

import msgspec
import pytest

from console.doctor.report import AFTER, findings
from console.objects import Node
from console.seen import ALL_NODES, Unseen
from console.seen_nodes import seen_nodes
from policies.node_state import Ages, Gpu, NodeState, NotRegistered
from tests.console.installations import installation, nodes, parsed, pods, policies, seen
from tests.console.objects import gpu, node, pending, pod, state, taint, tenant

UNKNOWN = msgspec.structs.replace(gpu(index=1), free=None, largest_free=None, hidden=None, granted=None)
FINE = {"shares-fit": "not-applicable", "numbers-agree": "ok"}


@pytest.mark.parametrize("check", [*FINE])
def test_a_pod_whose_image_comes_waits_for_no_share(check: str) -> None:
    node = nodes(state(gpu(tenant("pulls", 5), tenant("a", 2)), gpu(tenant("b", 7), index=1), on="gpu-0"))
    twenty = policies("vgpusPerGpu: 20\n")
    on_node = pod("pulls", "0.5", on="gpu-0", phase="Pending")
    for waits, status in ((on_node, FINE[check]), (pending("late", "0.5", ""), "warning")):
        on = installation(seen(**node, **pods(waits)), **twenty)
        (found,) = (one for one in findings(on, AFTER) if one.check == check)
        assert found.status == status


@pytest.mark.parametrize(
    ("other", "status"),
    [({"strategy": "partition"}, "not-applicable"), ({"resource": "gpu-share.dev/vgpu-model-t4"}, "warning")],
)
def test_a_share_that_waits_for_other_gpus_is_no_matter_of_these(other: dict[str, str], status: str) -> None:
    waits = pending("late", "0.5", "")
    grant = json.loads(waits["metadata"]["annotations"]["gpu-share.dev/grant"])
    waits["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant | other)
    node = nodes(state(gpu(tenant("a", 7)), gpu(tenant("b", 7), index=1), on="gpu-0"))
    on = installation(seen(**node, **pods(waits)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert found.status == status
    assert "0.6 of GPUs is free" not in str(found.found)


@pytest.mark.parametrize(("models", "free"), [(("gpu", "gpu", "t4"), "0"), (("t4", "t4", "gpu"), "0.6")])
def test_by_dra_a_share_that_waits_is_judged_by_gpus_of_its_device(models: tuple[str, ...], free: str) -> None:
    waits = pending("late", "0.5", "")
    grant = json.loads(waits["metadata"]["annotations"]["gpu-share.dev/grant"])
    of_t4 = {"main": {"resource": "gpu-share.dev/share-500m-model-t4", "share": "0.5"}}
    by_dra = {"allocation": "dra", "resource": "", "containers": of_t4}
    waits["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant | by_dra)
    left_of = zip((3, 3, 0), models, strict=True)
    made = [
        gpu(tenant("a", 10 - left), index=index, resource="", allocation="dra", device=device)
        for index, (left, device) in enumerate(left_of)
    ]
    on = installation(seen(**nodes(state(*made, on="gpu-0")), **pods(waits)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert (found.status, "DRA" in str(found.hint)) == ("warning", False)
    assert found.found[0].startswith(f"{free} of GPUs is free")


def judged(node: dict[str, Any], *shares: str) -> tuple[str, str]:
    on = installation(seen(**node, **pods(*(pending(f"late-{share}", share, "") for share in shares))))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    return found.status, " ".join(found.found)


def test_where_nothing_waits_there_is_nothing_to_judge() -> None:
    assert judged(nodes(state(gpu(), on="gpu-0")))[0] == "not-applicable"


def test_a_full_cluster_has_no_room_for_what_waits() -> None:
    full = state(gpu(tenant("a", 10)), gpu(tenant("b", 9), index=1), on="gpu-0")
    told = "0.1 of GPUs is free in all, and the smallest that waits is 0.4: none has room for it"
    assert judged(nodes(full), "0.4") == ("warning", told)


def test_each_size_that_waits_is_judged_and_not_the_smallest_alone() -> None:
    node = nodes(state(gpu(tenant("a", 7)), gpu(tenant("b", 7), index=1), on="gpu-0"))
    told = "the largest share that fits is 0.3, and one that waits is 0.4: no one GPU has room for it"
    status, said = judged(node, "0.4", "0.1")
    assert (status, told in said) == ("warning", True), said


def test_a_share_for_which_no_gpu_is_shared_has_no_room() -> None:
    told = "no GPU is shared as gpu-share.dev/vgpu, and the smallest that waits is 0.2"
    assert judged(nodes(state(gpu(resource="example.com/part"), on="gpu-0")), "0.2") == ("warning", told)


def test_room_that_no_pod_can_get_is_none() -> None:
    unknown = (NotRegistered(resource="gpu-share.dev/vgpu", why="the kubelet said no"),)
    assert judged(nodes(state(gpu(), on="gpu-0", not_registered=unknown)), "0.2")[0] == "warning"
    assert judged(nodes(state(gpu(), on="gpu-0"), allocatable={"cpu": "8"}), "0.2")[0] == "warning"


def test_what_fits_on_gpus_that_are_seen_fits_whatever_others_would_say() -> None:
    old = state(gpu(), on="gpu-1", ages=Ages(health=3600.0))
    half = state(gpu(tenant("a", 5)), on="gpu-0")
    assert judged(nodes(half, old), "0.5")[0] == "ok"
    status, said = judged(nodes(half, old), "0.9")
    assert status == "warning"
    assert said.endswith("1 of 2 nodes not seen: gpu-1: gpu-share plugin has been silent for 3600 s")
    assert judged(nodes(None, old), "0.5")[0] == "unknown"


@pytest.mark.parametrize("gpus", [(UNKNOWN,), (gpu(tenant("b", 10)), UNKNOWN)])
def test_what_nobody_knows_to_be_free_may_have_room(gpus: tuple[Gpu, ...]) -> None:
    full = state(gpu(tenant("a", 10)), on="gpu-0")
    told = "nobody knows what is free of gpu-share.dev/vgpu on gpu-1"
    assert judged(nodes(full, state(*gpus, on="gpu-1")), "0.5") == ("unknown", told)
    half = state(gpu(tenant("a", 5)), on="gpu-0")
    assert judged(nodes(half, state(*gpus, on="gpu-1")), "0.5")[0] == "ok"


def test_a_gpu_that_failed_has_no_room_even_if_nobody_knows_who_is_on_it() -> None:
    failed = msgspec.structs.replace(UNKNOWN, healthy=False)
    assert judged(nodes(state(gpu(tenant("a", 10)), failed, on="gpu-0")), "0.5")[0] == "warning"


def test_what_nobody_knows_of_one_kind_hides_nothing_of_another() -> None:
    late = pending("other", "0.5", "")
    grant = json.loads(late["metadata"]["annotations"]["gpu-share.dev/grant"])
    late["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant | {"resource": "gpu-share.dev/vgpu-t4"})
    node = nodes(state(UNKNOWN, on="gpu-0"))
    on = installation(seen(**node, **pods(pending("late", "0.5", ""), late)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert (found.status, len(found.found)) == ("warning", 2)
    assert found.found[0].startswith("no GPU is shared as gpu-share.dev/vgpu-t4")
    assert found.found[1] == "nobody knows what is free of gpu-share.dev/vgpu on gpu-0"


def placed(one: Any, **spec: Any) -> Any:
    one["spec"] |= spec
    return one


TAINTED = {"spec": {"taints": [taint("team", "NoSchedule")]}}
LABELLED = {"metadata": {"name": "gpu-0", "labels": {"gpu-share.dev/node": "true", "pool": "a"}}}
BEARS = {"tolerations": [{"key": "team", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("on_node", "spec", "told"),
    [
        (TAINTED, {}, "gpu-0 (taint team)"),
        (TAINTED, BEARS, ""),
        (LABELLED, {"nodeSelector": {"pool": "b"}}, "gpu-0 (no label pool=b)"),
        (LABELLED, {"nodeSelector": {"pool": "a"}}, ""),
    ],
    ids=["taint", "tolerated", "label", "has the label"],
)
def test_a_node_to_which_the_pod_that_waits_does_not_come_is_no_room_for_it(
    on_node: dict[str, Any], spec: dict[str, Any], told: str
) -> None:
    only = seen_nodes([parsed({**node("gpu-0"), **on_node}, Node)], {"gpu-0": state(gpu(), on="gpu-0")})
    on = installation(seen(nodes=only, **pods(placed(pending("late", "0.5", ""), **spec))))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    said = f"the smallest that waits is 0.5, and has room only on {told}, to which its pod does not come"
    assert (found.status, found.found) == (("warning", (said,)) if told else ("ok", ()))
    assert ("placement in the policy" in found.hint) is bool(told)


def test_of_two_pods_that_wait_the_one_is_told_that_comes_to_no_node_with_room() -> None:
    only = seen_nodes([parsed({**node("gpu-0"), **TAINTED}, Node)], {"gpu-0": state(gpu(), on="gpu-0")})
    late = (placed(pending("late", "0.2", ""), **BEARS), pending("later", "0.5", ""))
    on = installation(seen(nodes=only, **pods(*late)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert found.found == (
        "one that waits is 0.5, and has room only on gpu-0 (taint team), to which its pod does not come",
    )


def test_a_share_that_waits_is_counted_in_vgpus_as_its_node_divides_its_gpus() -> None:
    fifths = gpu(tenant("a", 2), parts=5, vgpus_per_gpu=5)
    told = "0.6 of GPUs is free in all, and the smallest that waits is 1: none has room for it"
    assert judged(nodes(state(fifths, on="gpu-0"), allocatable={"gpu-share.dev/vgpu": "5"}), "0.5") == ("warning", told)
    assert judged(nodes(state(fifths, on="gpu-0"), allocatable={"gpu-share.dev/vgpu": "5"}), "0.3")[0] == "ok"


def test_where_processes_of_a_deleted_pod_use_the_room_it_is_said() -> None:
    waits = pending("late", "0.5", "")
    grant = json.loads(waits["metadata"]["annotations"]["gpu-share.dev/grant"])
    given = {"main": {"resource": "gpu-share.dev/share-500m", "share": "0.5"}}
    by_dra = grant | {"allocation": "dra", "resource": "", "containers": given}
    waits["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(by_dra)
    used = gpu(tenant("old", 800), parts=1000, resource="", allocation="dra", device="gpu", outlived=800)
    on = installation(seen(**nodes(state(used, on="gpu-0")), **pods(waits)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    said = (
        "0.2 of GPUs is free in all, and the smallest that waits is 0.5: none has room for it; gpu-0: GPU 0: 0.8 still "
    )
    assert found.found == (f"{said}used by processes of a pod that was deleted by force",)


def unread(*said: NodeState) -> dict[str, Any]:
    """Nodes that say what they have, and of which Kubernetes says nothing."""
    return {"nodes": seen_nodes([], {one.node: one for one in said})}


def test_room_on_a_node_that_nobody_may_read_is_not_known_to_be_room() -> None:
    hidden = (Unseen(what=ALL_NODES, why="it is forbidden", right="list nodes"),)
    only, full = state(gpu(), on="gpu-0"), state(gpu(tenant("a", 8)), on="gpu-1")
    on = installation(seen(**unread(only, full), unseen=hidden, **pods(pending("late", "0.5", ""))))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    told = "gpu-0 has room for 0.5, and nobody knows whether its pod comes there: it is forbidden"
    assert (found.status, found.found, found.right) == ("unknown", (told,), "list nodes")


def test_room_on_a_node_that_is_not_listed_is_not_known_to_be_room() -> None:
    told = "gpu-0 has room for 0.5, and nobody knows whether its pod comes there: not among the nodes that are listed"
    assert judged(unread(state(gpu(), on="gpu-0")), "0.5") == ("unknown", told)


def test_beside_a_node_that_nobody_may_read_room_is_certain_and_so_is_that_there_is_none() -> None:
    known, unlisted = nodes(state(gpu(tenant("a", 4)), on="gpu-0")), unread(state(gpu(tenant("b", 2)), on="gpu-1"))
    both = {"nodes": (*known["nodes"], *unlisted["nodes"])}
    assert judged(both, "0.6")[0] == "ok"
    assert judged(both, "0.7")[0] == "unknown"
    assert judged(both, "0.9")[0] == "warning"
    status, said = judged(both, "0.7", "0.9")  # of what is unknown and what is certain the latter is told
    assert (status, "one that waits is 0.9: no one GPU has room for it" in said) == ("warning", True), said
