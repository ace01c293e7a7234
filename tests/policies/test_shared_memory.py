"""A mount at /dev/shm would separate a container from its MPS server, and most charts have one."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, mutated, pod, policies

NODE = policies("mps: {attach: node}")
UNDER_MPS = pytest.mark.parametrize("by", [policies(), NODE], ids=["pod", "node"])
SPELLINGS = pytest.mark.parametrize(
    "path", ["/dev/shm", "/dev/shm/", "//dev/shm", "dev/shm", "./dev/shm", "/dev/./shm/.", "/dev//shm"]
)
MEMORY: dict[str, Any] = {"name": "dshm", "emptyDir": {"medium": "Memory"}}


def mount(path: str = "/dev/shm", name: str = "dshm", **fields: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **fields}


def mounting(*mounts: dict[str, Any], volume: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    volumes = [volume or MEMORY, {"name": "data", "emptyDir": {}}]
    return pod("0.2", container(volumeMounts=list(mounts)), volumes=volumes, **spec)


def own_mounts(of: dict[str, Any], index: int = 0) -> list[tuple[str, str]]:
    mounts = of["spec"]["containers"][index].get("volumeMounts") or []
    return [(one["name"], one["mountPath"]) for one in mounts if one["name"] != "nvidia-mps"]


@UNDER_MPS
@SPELLINGS
def test_the_mount_makes_room_for_mps_and_its_volume_stays(path: str, by: Any) -> None:
    after = mutated(mounting(mount("/data", "data"), mount(path)), by)
    assert own_mounts(after) == [("data", "/data")]
    assert after["spec"]["volumes"][0] == MEMORY
    assert mutated(after, by) == after


def test_a_warning_names_container_volume_and_the_limit_that_is_lost() -> None:
    volume = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
    (warning,) = granted(mounting(mount(), volume=volume)).warnings
    assert warning == (
        '"main": the volume "dshm" at /dev/shm was replaced by the shared memory of MPS, without its sizeLimit 8Gi'
    )
    (warning,) = granted(mounting(mount())).warnings
    assert "sizeLimit" not in warning


@pytest.mark.parametrize("kind", [{"emptyDir": {}}, {"emptyDir": {"medium": "HugePages"}}, {"ephemeral": {}}])
def test_every_volume_that_ends_with_its_pod_is_replaced(kind: dict[str, Any]) -> None:
    assert own_mounts(mutated(mounting(mount(), volume={"name": "dshm", **kind}))) == []


@pytest.mark.parametrize(
    "kind",
    [
        {"persistentVolumeClaim": {"claimName": "a"}},
        {"projected": {"sources": []}},
        {"configMap": {"name": "a"}},
        {"csi": {"driver": "a"}},
        {},
    ],
)
@UNDER_MPS
def test_what_is_more_than_scratch_memory_is_denied_and_not_lost(kind: dict[str, Any], by: Any) -> None:
    deny = denied(mounting(mount(), volume={"name": "dshm", **kind}), by)
    assert deny.code == "ConflictingRequest"
    assert "it is more than an emptyDir" in deny.message
    assert "Mount it elsewhere" in deny.message


def test_a_mount_of_no_volume_of_the_pod_is_denied() -> None:
    assert "more than an emptyDir" in denied(pod("0.2", container(volumeMounts=[mount()]))).message


@pytest.mark.parametrize("fields", [{"subPath": "a"}, {"subPathExpr": "$(A)"}, {"readOnly": True}])
def test_a_part_of_the_volume_is_replaced_like_the_whole(fields: dict[str, Any]) -> None:
    assert own_mounts(mutated(mounting(mount(**fields)))) == []


def test_several_mounts_at_the_path_are_all_taken_out_and_others_stay() -> None:
    mounts = [mount(), mount("/data", "data"), mount("/dev/shm/"), mount("/cache"), mount("//dev/shm", "data")]
    on = mounting(*mounts, initContainers=None)
    assert own_mounts(mutated(on)) == [("data", "/data"), ("dshm", "/cache")]
    assert len(granted(on).warnings) == 2  # each volume once


@pytest.mark.parametrize("path", ["/dev/shm/cache", "/dev/shm//x/", "dev/./shm/x"])
@UNDER_MPS
def test_a_mount_below_would_lie_in_the_memory_of_the_whole_node(path: str, by: Any) -> None:
    assert "Mount it outside /dev/shm" in denied(mounting(mount(path)), by).message


@pytest.mark.parametrize("path", ["/dev/../dev/shm", "/dev/shm/../shm", "/dev/shm/.."])
def test_a_path_with_two_dots_stays_denied(path: str) -> None:
    assert "without .." in denied(mounting(mount(path))).message


def test_the_policy_may_deny_it_instead() -> None:
    deny = denied(mounting(mount()), policies("mps: {sharedMemory: deny}"))
    assert "(_default.yaml:1). Remove the mount: /dev/shm comes with the share." in deny.message


def test_other_containers_keep_theirs_and_the_warning_says_so() -> None:
    on = mounting(mount())
    on["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = on["spec"]["containers"][0]["name"]
    on["spec"]["containers"].append(container("sidecar", volumeMounts=[mount()]))
    on["spec"]["initContainers"] = [container("first", volumeMounts=[mount("/dev/shm", "data")])]
    after = mutated(on)
    assert own_mounts(after) == []
    assert own_mounts(after, 1) == [("dshm", "/dev/shm")]
    assert after["spec"]["initContainers"][0]["volumeMounts"] == [mount("/dev/shm", "data")]
    (warning,) = granted(on).warnings
    assert warning.endswith('MPS; "sidecar" still has the volume')


def test_an_init_container_with_a_share_gets_the_one_of_mps_too() -> None:
    first = container("first", volumeMounts=[mount()])
    annotations = {"container.gpu-share.dev/first": "0.2"}
    after = mutated(pod(None, annotations=annotations, initContainers=[first], volumes=[MEMORY]), NODE)
    assert after["spec"]["initContainers"][0]["volumeMounts"] == []


@pytest.mark.parametrize(
    ("share", "rules"), [("0.2", "strategy: time-slicing"), ("1", "share: {whole: gpus}")], ids=["sliced", "whole"]
)
@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/cache"])
def test_without_mps_the_mount_stays(share: str, rules: str, path: str) -> None:
    on = mounting(mount(path))
    on["metadata"]["annotations"]["gpu-share"] = share
    assert own_mounts(mutated(on, policies(rules))) == [("dshm", path)]
    assert granted(on, policies(rules)).warnings == ()
