"""What `gpu-share doctor` says of MIG instances that others have beside those that are shared, and of replicas."""

import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, findings
from console.objects import Node
from console.seen import Unseen
from console.seen_nodes import seen_nodes
from policies.node_state import LEFT_TO_OTHERS, Gpu
from tests.console.installations import CLUSTER, installation, parsed, policies, seen
from tests.console.objects import gpu, node
from tests.console.test_doctor_other_plugins import ONCE, SEVENTH, found, judged, of
from tests.console.wrong.of_kubernetes import of_nvidia

_SHARED = "{indexes: [0], mig: shared}"
_INSTANCE = (gpu(uuid="MIG-1"),)
_OF_BOTH = (("gpu", "uuid"), ("mig", "parentUUID"), ("mig", "parentUUID"))
_UNKNOWN_TIMES = "since the number of replicas of each is not known"


def in_mig_mode(*numbers: int) -> tuple[str, ...]:
    """What a node says of GPUs in MIG mode that it leaves to others."""
    why = "cannot be shared: GPU-{0} is in MIG mode, and " + LEFT_TO_OTHERS
    return tuple(f"GPU {number} of 8 {why.format(number)}" for number in numbers)


def beside(profiles: dict[str, int], *left: int, times: str = "1") -> Installation:
    """One whose node shares an instance, and leaves GPUs in MIG mode to a plugin that has some of each profile."""
    advertised = {f"nvidia.com/mig-{profile}": str(amount) for profile, amount in profiles.items()}
    labels = {f"{name}.replicas": times for name in advertised} if times else {}
    return of(advertised, _SHARED, gpus=_INSTANCE, skipped=in_mig_mode(*left), left_to_others=0, labels=labels)


def silent(
    advertised: dict[str, str],
    *rules: str,
    by_dra: tuple[dict[str, str], ...] = (),
    labels: dict[str, str] | None = None,
    runs: bool = True,
) -> Installation:
    """One whose only node says nothing of itself, though a part of gpu-share *runs* there."""
    made = node("gpu-0", allocatable=advertised)
    made["metadata"]["labels"] |= labels or {}
    hidden = {"gpu-0": Unseen(what="states", why="it is forbidden", right="get pods/proxy")} if runs else {}
    cluster = policies(f"{CLUSTER}nodes: [{', '.join(rules)}]\n")
    slices = (of_nvidia(*by_dra),) if by_dra else ()
    return installation(seen(nodes=seen_nodes([parsed(made, Node)], hidden)), **{**cluster, "slices": slices})


def waiting(
    advertised: dict[str, str],
    *rules: str,
    by_dra: tuple[dict[str, str], ...] = (),
    labels: dict[str, str] | None = None,
) -> Installation:
    """One whose plugin waits, and has not said yet what it shares and what it leaves."""
    slices = (of_nvidia(*by_dra),) if by_dra else ()
    return of(advertised, *rules, gpus=(), labels=labels or {}, slices=slices)


def unknown(on: Installation) -> tuple[str, ...]:
    (one,) = (one for one in findings(on, AFTER) if one.check == "other-plugins")
    return one.found if one.status == "unknown" else ()


@pytest.mark.parametrize(
    ("left", "profiles", "told"),
    [
        ((1,), {"7g.80gb": 1}, ""),
        ((1,), {"7g.80gb": 2}, "2 nvidia.com/mig-7g.80gb"),
        ((1,), {"3g.40gb": 2}, ""),
        ((1,), {"3g.40gb": 4}, "4 nvidia.com/mig-3g.40gb"),
        ((1,), {"1g.10gb.me": 1, "1g.10gb": 6}, ""),
        ((1,), {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}, ""),
        ((1,), {"1g.10gb": 4, "2g.20gb": 2, "3g.40gb": 2}, "14 slices of MIG instances"),
        ((4, 5, 6, 7), {"1g.10gb": 16, "2g.20gb": 8, "3g.40gb": 8}, "56 slices of MIG instances"),
        ((1,), {"1g.10gb": 8, "3g.40gb": 1}, "8 nvidia.com/mig-1g.10gb"),
        ((1,), {"1c.3g.40gb": 6}, ""),
        ((1,), {"new": 7}, ""),
    ],
)
def test_a_gpu_has_as_many_instances_as_its_slices_allow(
    left: tuple[int, ...], profiles: dict[str, int], told: str
) -> None:
    by = f"nodes of _cluster.yaml leaves {len(left)} in MIG mode to others"
    assert found(beside(profiles, *left)) == ((f"gpu-0 advertises {told}, and {by}",) if told else ())


def test_replicas_of_instances_take_the_slices_of_one() -> None:
    assert found(beside({"1g.10gb": 16, "3g.40gb": 4}, 1, times="4")) == ()
    assert judged(beside({"1g.10gb": 20, "3g.40gb": 4}, 1, times="4")) == "warning"


@pytest.mark.parametrize("times", ["", "0"])
def test_instances_of_which_the_number_of_replicas_is_not_known_may_be_those_that_are_left(times: str) -> None:
    (told,) = unknown(beside({"1g.10gb": 28}, 1, times=times))
    assert told.endswith(_UNKNOWN_TIMES)
    assert unknown(beside({"1g.10gb": 4, "2g.20gb": 2}, 1, times=times)) != ()
    assert judged(beside({"1g.10gb": 4, "2g.20gb": 1}, 1, times=times)) == "ok"
    assert judged(beside({"1g.10gb": 1}, times=times)) == "warning"


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
@pytest.mark.parametrize("labels", [{}, {"nvidia.com/gpu.replicas": "0"}])
def test_more_than_is_left_may_be_replicas_where_no_label_says_how_many(name: str, labels: dict[str, str]) -> None:
    doubt = f"nobody knows whether the 10 {name} of gpu-0 are of GPUs that are shared, {_UNKNOWN_TIMES}"
    assert unknown(of({name: "10"}, SEVENTH, left_to_others=1, labels=labels)) == (doubt,)
    assert found(of({name: "1"}, SEVENTH, left_to_others=1, labels=labels)) == ()
    assert found(of({name: "10"}, left_to_others=0, labels=labels)) == (f"gpu-0 advertises {name} too",)


def test_the_profile_of_instances_that_are_called_gpus_says_how_many_a_gpu_has() -> None:
    labels = {**ONCE, "nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-H100-MIG-3g.40gb"}
    for amount, status in (("2", "ok"), ("4", "warning")):
        on = of({"nvidia.com/gpu": amount}, _SHARED, gpus=_INSTANCE, skipped=in_mig_mode(1), labels=labels)
        assert judged(on) == status


def test_a_number_of_gpus_that_nobody_knows_is_not_said() -> None:
    advertised, labels = {"nvidia.com/mig-1g.10gb": "14"}, {"nvidia.com/mig-1g.10gb.replicas": "1"}
    rules = (_SHARED, "{model: '*T4*', offer: none}")
    told = "gpu-0 advertises 14 nvidia.com/mig-1g.10gb, and nodes of _cluster.yaml leaves 1 in MIG mode to others"
    assert found(of(advertised, *rules, gpus=_INSTANCE, skipped=in_mig_mode(1), labels=labels)) == (told,)


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        (("{mig: shared}",), "warning"),
        (("{mig: whole}",), "warning"),
        (("{indexes: [0], mig: shared}",), "unknown"),
        (("{model: '*H100*', mig: shared}", "{offer: mps}"), "unknown"),
        (("{node: cpu-*, mig: shared}",), "ok"),
        (("{offer: mps}", "{mig: shared}"), "ok"),
    ],
)
def test_of_a_node_that_does_not_tell_its_gpus_the_entries_say_whether_instances_are_shared(
    rules: tuple[str, ...], status: str
) -> None:
    instances = tuple({"type": "mig", "uuid": f"MIG-{number}", "parentUUID": "GPU-0"} for number in range(7))
    advertised = {"nvidia.com/mig-1g.10gb": "7"}
    assert judged(silent(advertised, *rules)) == status
    assert judged(silent({}, *rules, by_dra=instances)) == status
    assert judged(waiting(advertised, *rules)) == status
    assert judged(waiting({}, *rules, by_dra=instances)) == status


@pytest.mark.parametrize(
    ("labels", "runs", "status"),
    [
        ({}, True, "unknown"),
        ({}, False, "warning"),
        ({"mig.strategy": "single", "gpu.product": "NVIDIA-H100-MIG-1g.10gb"}, True, "unknown"),
        ({"mig.strategy": "single", "gpu.product": "NVIDIA-H100-MIG-1g.10gb"}, False, "unknown"),
        ({"mig.strategy": "single"}, True, "unknown"),
        ({"mig.strategy": "single", "gpu.product": "NVIDIA-H100"}, True, "warning"),
        ({"mig.strategy": "mixed"}, True, "warning"),
    ],
)
def test_of_a_node_that_does_not_tell_its_gpus_labels_say_whether_others_have_some_in_mig_mode(
    labels: dict[str, str],
    runs: bool,  # noqa: FBT001 - of a table
    status: str,
) -> None:
    named = {f"nvidia.com/{name}": text for name, text in labels.items()}
    for rules in ((), (SEVENTH,)):
        assert judged(silent({"nvidia.com/gpu": "7"}, *rules, labels=ONCE | named, runs=runs)) == status
        if runs:
            assert judged(waiting({"nvidia.com/gpu": "7"}, *rules, labels=ONCE | named)) == status
    assert judged(silent({"nvidia.com/gpu": "7"}, "{mig: shared}", labels=ONCE | named, runs=runs)) == "warning"


def test_a_gpu_of_nvidias_dra_driver_may_be_in_mig_mode_where_the_node_could_not_tell() -> None:
    devices = tuple({"type": "gpu", "uuid": f"GPU-{number}"} for number in range(2))
    for by_dra in (devices, ({"type": "gpu"}, {"type": "gpu"})):
        assert judged(silent({}, SEVENTH, by_dra=by_dra)) == "unknown"
        assert judged(waiting({}, SEVENTH, by_dra=by_dra)) == "unknown"
        assert judged(silent({}, SEVENTH, by_dra=by_dra, runs=False)) == "warning"
        assert judged(silent({}, SEVENTH, by_dra=by_dra[:1])) == "ok"


def test_parts_of_gpus_may_be_of_some_in_mig_mode_where_the_node_could_not_tell() -> None:
    advertised = {"aliyun.com/gpu-mem": "8"}
    assert judged(silent(advertised)) == judged(waiting(advertised)) == "unknown"
    assert judged(silent(advertised, runs=False)) == judged(silent(advertised, "{mig: shared}")) == "warning"


def test_what_is_not_known_of_a_silent_node_names_the_right_that_is_missing() -> None:
    (one,) = (one for one in findings(silent({"nvidia.com/gpu": "7"}), AFTER) if one.check == "other-plugins")
    assert (one.status, one.right) == ("unknown", "get pods/proxy")


@pytest.mark.parametrize(
    ("gpus", "devices", "status"),
    [
        (_INSTANCE, [{"type": "gpu", "uuid": "GPU-1"}, *[{"type": "mig", "parentUUID": "GPU-1"}] * 20], "ok"),
        (_INSTANCE, [{"type": "mig", "parentUUID": "GPU-0"}], "warning"),
        (_INSTANCE, [{"type": "mig", "uuid": "MIG-2", "parentUUID": "GPU-0"}], "warning"),
        (_INSTANCE, [{"type": "gpu", "uuid": "GPU-0"}], "warning"),
        (_INSTANCE, [{"type": "mig", "uuid": "MIG-1", "parentUUID": "GPU-1"}], "warning"),
        ((gpu(uuid="GPU-0"),), [{"type": "mig", "parentUUID": "GPU-0"}], "warning"),
        ((gpu(uuid="GPU-0"),), [{"type": "mig", "parentUUID": "GPU-1"}], "ok"),
    ],
)
def test_instances_of_nvidias_dra_driver_are_known_by_their_gpu(
    gpus: tuple[Gpu, ...], devices: list[dict[str, str]], status: str
) -> None:
    slices = (of_nvidia(*devices),)
    assert judged(of({}, gpus=gpus, skipped=in_mig_mode(1), left_to_others=0, slices=slices)) == status


def test_a_gpu_that_is_left_may_be_divided_by_nvidias_dra_driver() -> None:
    def has(*numbers: int) -> Installation:
        devices = [{"type": kind, told: f"GPU-{n}"} for n in numbers for kind, told in _OF_BOTH]
        return of({}, _SHARED, SEVENTH, gpus=_INSTANCE, left_to_others=1, slices=(of_nvidia(*devices),))

    assert judged(has(7)) == "ok"
    assert judged(has(6, 7)) == "warning"


def test_a_device_of_nvidias_dra_driver_in_two_slices_is_one() -> None:
    slices = (of_nvidia({"type": "gpu", "uuid": "GPU-7"}),) * 2
    assert judged(of({}, _SHARED, SEVENTH, gpus=_INSTANCE, left_to_others=1, slices=slices)) == "ok"
