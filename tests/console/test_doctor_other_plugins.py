"""What `gpu-share doctor` says of other device plugins on nodes of which `_cluster.yaml` leaves them some GPUs."""

from typing import Any

import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, findings
from console.objects import Node
from console.seen import Unseen
from console.seen_nodes import seen_nodes
from policies.node_state import LEFT_TO_OTHERS, Gpu
from tests.console.installations import CLUSTER, installation, parsed, policies, seen
from tests.console.objects import gpu, node, state
from tests.console.wrong.of_kubernetes import of_nvidia

SEVENTH = "{node: 'gpu-*', indexes: [7], offer: none}"
ONCE = {"nvidia.com/gpu.replicas": "1"}
BESIDE = "GPU 1 of 2 cannot be shared: GPU-1 is in MIG mode, and " + LEFT_TO_OTHERS


def of(advertised: dict[str, str], *rules: str, gpus: tuple[Gpu, ...] = (gpu(),), **more: Any) -> Installation:
    """One whose only node has resources of others too; *rules* are the entries of `nodes`."""
    labels = more.pop("labels", {})
    told = {key: more.pop(key) for key in ("skipped", "left_to_others") if key in more}
    made = node("gpu-0", allocatable={"gpu-share.dev/vgpu": "10", **advertised})
    made["metadata"]["labels"] |= labels
    said = state(*gpus, on="gpu-0", **told)
    cluster = f"{CLUSTER}nodes: [{', '.join(rules)}]\n" if rules else CLUSTER
    nodes = seen_nodes([parsed(made, Node)], {"gpu-0": said})
    return installation(seen(nodes=nodes), **{**policies(cluster), **more})


def judged(on: Installation) -> str:
    return next(one.status for one in findings(on, AFTER) if one.check == "other-plugins")


def found(on: Installation) -> tuple[str, ...]:
    (one,) = (one for one in findings(on, AFTER) if one.check == "other-plugins")
    assert one.status == ("warning" if one.found else "ok")
    return one.found


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ((SEVENTH,), None),
        (("{node: gpu-0, indexes: [0], offer: whole}", SEVENTH), None),
        (("{model: '*H200*', offer: mps}", "{offer: none}"), 1),
        (("{model: '*A100*', offer: none}",), 1),
    ],
)
def test_who_has_a_gpu_that_is_left_to_it_is_not_told_of(rules: tuple[str, ...], left: int | None) -> None:
    assert found(of({"nvidia.com/gpu": "1"}, *rules, left_to_others=left)) == ()
    assert found(of({"nvidia.com/GH100_H200": "1"}, *rules, left_to_others=left)) == ()
    assert found(of({}, *rules, left_to_others=left, slices=(of_nvidia(),))) == ()


def test_a_model_that_is_left_to_others_leaves_what_the_node_counts_of_it() -> None:
    rule = "{model: '*A100*', offer: none}"
    taken = ("gpu-0 advertises nvidia.com/gpu too",)
    assert found(of({"nvidia.com/gpu": "8"}, rule, left_to_others=0)) == taken
    assert found(of({}, rule, left_to_others=0, slices=(of_nvidia(),))) != ()
    more = ("gpu-0 advertises 8 nvidia.com/gpu, and nodes of _cluster.yaml leaves 2 to others",)
    assert found(of({"nvidia.com/gpu": "8"}, rule, left_to_others=2, labels=ONCE)) == more
    assert judged(of({"nvidia.com/gpu": "1"}, rule)) == "unknown"  # of an older plugin
    assert judged(of({}, rule, slices=(of_nvidia(),))) == "unknown"


def test_a_number_in_nodes_that_the_node_has_no_gpu_of_leaves_none_to_others() -> None:
    assert found(of({"nvidia.com/gpu": "1"}, SEVENTH, left_to_others=0)) == ("gpu-0 advertises nvidia.com/gpu too",)
    # NVML does not see the GPU of a VM, nor does the plugin.
    of_vms = {"nvidia.com/GH100_H200": "1"}
    assert found(of(of_vms, SEVENTH, left_to_others=0)) == ()
    assert judged(of(of_vms, "{model: '*H200*', offer: none}", left_to_others=0)) == "unknown"


@pytest.mark.parametrize("name", ["nvidia.com/GH100_H200", "aliyun.com/gpu-mem"])
def test_what_may_count_something_else_than_gpus_is_unknown_beyond_those_that_are_left(name: str) -> None:
    on = of({name: "8"}, SEVENTH)
    (one,) = (one for one in findings(on, AFTER) if one.check == "other-plugins")
    told = (f"nobody knows whether the 8 {name} of gpu-0 are of GPUs that are shared",)
    assert (one.status, one.found) == ("unknown", told)
    assert "nvidia-smi -L" in one.hint
    assert judged(of({name: "8"})) == "warning"


@pytest.mark.parametrize(
    "rules",
    [
        (),
        ("{node: cpu-*, offer: none}",),
        ("{indexes: [7], offer: whole}", SEVENTH),
        ("{offer: mps}", "{node: gpu-0, offer: none}"),
    ],
)
def test_where_nothing_is_left_to_another_plugin_it_is_told_of(rules: tuple[str, ...]) -> None:
    assert found(of({"nvidia.com/gpu": "1"}, *rules)) == ("gpu-0 advertises nvidia.com/gpu too",)
    assert found(of({}, *rules, slices=(of_nvidia(),))) != ()


@pytest.mark.parametrize(
    "name",
    [
        *("k8s.amazonaws.com/vgpu", "aliyun.com/gpu-mem", "volcano.sh/vgpu-number", "run.ai/gpu", "nvidia.com/gpu"),
        *("nvidia.com/shared-gpu", "nvidia.com/GP104GL_A10", "tencent.com/vcuda-core", "koordinator.sh/gpu-core"),
    ],
)
def test_every_resource_that_admission_takes_for_a_gpu_is_told_of(name: str) -> None:
    assert found(of({name: "4"})) == (f"gpu-0 advertises {name} too",)
    assert found(of({name: "0"})) == ()


@pytest.mark.parametrize(
    "name",
    [
        *("gpu-share.dev/gpu", "gpu-share.dev/vgpu-mig-1g.10gb", "rdma/hca", "example.com/npu"),
        *("amd.com/gpu", "amd.com/sev-snp", "amd.com/xilinx_u30", "habana.ai/gaudi", "gpu.intel.com/i915"),
        *("openshift.io/gpu_vf", "rdma/ib-gpu"),
    ],
)
def test_a_resource_of_shares_or_of_something_else_is_none_of_other_plugins(name: str) -> None:
    assert found(of({name: "4"})) == ()


def test_as_shares_are_called_now_or_were_before_no_other_plugin_is_told_of() -> None:
    names = {"k8s.amazonaws.com/vgpu": "10", "example.com/vgpu-model-t4": "10", "old.io/vgpu": "10"}
    cluster = policies(f"{CLUSTER}resourceNames: {{mps: k8s.amazonaws.com/vgpu, time-slicing: example.com/vgpu}}\n")
    assert found(of(names, gpus=(gpu(resource="old.io/vgpu"),), **cluster)) == ()
    hidden = {"policies": Unseen(what="policies", why="it is forbidden", right="get configmaps")}
    unread = of({"old.io/vgpu": "10"}, gpus=(gpu(resource="old.io/vgpu"),), policies=None, unseen=hidden)
    assert found(unread) == ()


def test_what_partitions_name_is_a_gpu_of_the_node_where_it_is_of_nvidia_alone() -> None:
    names = ("example.com/gpu-half", "nvidia.com/gpu")
    tables = ", ".join(f"p{at}: [{{share: '0.5', resource: {name}}}]" for at, name in enumerate(names))
    cluster = policies(f"{CLUSTER}partitions: {{{tables}}}\n")
    assert found(of(dict.fromkeys(names, "2"), **cluster)) == ("gpu-0 advertises nvidia.com/gpu too",)


def test_what_others_call_a_resource_moves_no_cursor() -> None:
    assert found(of({"x.io/gpu\x1b[2J": "1"})) == ("gpu-0 advertises x.io/gpu?[2J too",)


def test_of_very_many_resources_and_nodes_some_are_named() -> None:
    (told,) = found(of({f"x{number:02}.io/gpu": "1" for number in range(30)}))
    assert told.endswith("x09.io/gpu, and 20 more too")
    made = [parsed(node(f"gpu-{number}", allocatable={"x.io/gpu": "1"}), Node) for number in range(30)]
    of_nodes = found(installation(seen(nodes=seen_nodes(made, {}))))
    assert (len(of_nodes), of_nodes[-1]) == (11, "and 20 more")


@pytest.mark.parametrize(
    ("advertised", "labels", "is_more"),
    [
        ({"nvidia.com/gpu": "2"}, {}, False),
        ({"nvidia.com/gpu": "3"}, ONCE, True),
        ({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.replicas": "4"}, False),
        ({"nvidia.com/gpu.shared": "9"}, {"nvidia.com/gpu.replicas": "4"}, True),
        ({"gpu.intel.com/memory.max": "48000000000"}, {}, False),
    ],
)
def test_who_advertises_more_than_is_left_to_it_is_told_of(
    advertised: dict[str, str], labels: dict[str, str], *, is_more: bool
) -> None:
    rules = ("{indexes: [0], offer: mps}", "{indexes: [0, 6], offer: none}", SEVENTH)
    ((name, amount),) = advertised.items()
    told = (f"gpu-0 advertises {amount} {name}, and nodes of _cluster.yaml leaves 2 to others",)
    assert found(of(advertised, *rules, labels=labels)) == (told if is_more else ())


def test_beside_a_gpu_in_mig_mode_that_is_left_to_others_all_gpus_are_too_many() -> None:
    told = "gpu-0 advertises 8 nvidia.com/gpu, and nodes of _cluster.yaml leaves 1 in MIG mode to others"
    shared = tuple(gpu(index=number) for number in range(7))
    assert found(of({"nvidia.com/gpu": "8"}, gpus=shared, left_to_others=0, skipped=(BESIDE,), labels=ONCE)) == (told,)


@pytest.mark.parametrize(
    ("devices", "status"),
    [
        ([{"type": "gpu", "uuid": "GPU-7"}], "ok"),
        ([{"type": "gpu", "uuid": "GPU-7"}, {"type": "gpu", "uuid": "GPU-8"}], "ok"),  # by `nodes` it is one
        ([{"type": "gpu", "uuid": "GPU-7"}, {"type": "gpu", "uuid": "GPU-0"}], "warning"),
        ([{"type": "gpu"}, {"type": "vfio"}, {"type": "mig"}], "ok"),
        ([{}, {}], "warning"),
    ],
)
def test_devices_of_nvidias_dra_driver_are_known_by_their_uuids_or_counted(
    devices: list[dict[str, str]], status: str
) -> None:
    assert judged(of({}, SEVENTH, gpus=(gpu(uuid="GPU-0"),), slices=(of_nvidia(*devices),))) == status


@pytest.mark.parametrize("gpus", [(), (gpu(uuid="MIG-1"),)])
def test_uuids_say_nothing_where_the_node_does_not_name_the_gpus_that_it_shares(gpus: tuple[Gpu, ...]) -> None:
    devices = of_nvidia({"type": "gpu", "uuid": "GPU-0"})
    told = ("gpu-0 has devices of the DRA driver gpu.nvidia.com too",)
    assert found(of({}, gpus=gpus, left_to_others=0, slices=(devices,))) == told
    assert judged(of({}, SEVENTH, gpus=gpus, slices=(devices,))) == "ok"


@pytest.mark.parametrize(("skipped", "status"), [((), "warning"), ((BESIDE,), "unknown")])
def test_instances_that_nvidias_dra_driver_can_make_may_be_those_that_are_shared(
    skipped: tuple[str, ...], status: str
) -> None:
    instances = of_nvidia(*([{"type": "mig"}] * 9))
    assert judged(of({}, gpus=(gpu(uuid="MIG-1"),), skipped=skipped, slices=(instances,))) == status


@pytest.mark.parametrize(
    ("gpus", "skipped", "is_taken"),
    [
        ((gpu(),), (BESIDE,), False),
        ((gpu(), gpu(index=1, uuid="MIG-1")), (BESIDE,), False),
        ((gpu(),), (), False),
        ((gpu(), gpu(index=1, uuid="MIG-1")), (), True),
    ],
)
def test_mig_instances_of_others_are_told_of_where_all_of_the_node_are_shared(
    gpus: tuple[Gpu, ...], skipped: tuple[str, ...], *, is_taken: bool
) -> None:
    told = ("gpu-0 advertises nvidia.com/mig-1g.10gb too",) if is_taken else ()
    assert found(of({"nvidia.com/mig-1g.10gb": "7"}, gpus=gpus, skipped=skipped)) == told


def test_whether_a_gpu_is_left_to_others_is_unknown_without_the_right_to_read_the_policies() -> None:
    hidden = {"policies": Unseen(what="policies", why="it is forbidden", right="get configmaps")}
    on = of({"nvidia.com/gpu": "1"}, policies=None, policy_problems=None, unseen=hidden)
    (one,) = (one for one in findings(on, AFTER) if one.check == "other-plugins")
    assert (one.status, one.right) == ("unknown", "get configmaps")
