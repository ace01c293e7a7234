import tracemalloc
from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

NODE = policies("mps: {attach: node}")
SLICED = policies("strategy: time-slicing")
EVERY = pytest.mark.parametrize("by", [policies(), NODE, SLICED], ids=["pod", "node", "time-slicing"])


def mounting(path: str, volume: dict[str, Any] | None = None, **mount: Any) -> dict[str, Any]:
    volume = volume or {"name": "cache", "emptyDir": {}}
    return pod("0.2", container(volumeMounts=[{"name": volume["name"], "mountPath": path, **mount}]), volumes=[volume])


def host_path(path: str) -> dict[str, Any]:
    return mounting("/data", {"name": "data", "hostPath": {"path": path}})


@EVERY
def test_a_pod_that_sees_the_processes_of_the_node_is_denied(by: Any) -> None:
    assert denied(pod("0.2", hostPID=True), by).code == "PrivilegedContainer"
    granted(pod("0.2", hostPID=False), by)


@pytest.mark.parametrize(
    "name",
    [
        "SYS_ADMIN",
        "CAP_SYS_ADMIN",
        "sys_admin",
        "cap_sys_rawio",
        "ALL",
        "all",
        "SYS_MODULE",
        "k\u0131ll",
        "\u017fys_nice",
        "\u212aill",
    ],
)
@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_a_capability_that_reaches_past_a_share_is_denied(name: str, group: str) -> None:
    bad = container("bad", securityContext={"capabilities": {"add": ["CHOWN", name]}})
    on = pod("0.2", container(), bad) if group == "containers" else pod("0.2", initContainers=[bad])
    assert denied(on).code == "PrivilegedContainer"


@pytest.mark.parametrize("capabilities", [None, {}, {"add": None}, {"add": ["NET_ADMIN"]}, {"drop": ["ALL"]}])
def test_other_capabilities_pass(capabilities: dict[str, Any] | None) -> None:
    granted(pod("0.2", container(securityContext={"capabilities": capabilities})))


@EVERY
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/tmp",  # it holds the directory of the pipes
        "/dev",
        "/dev/nvidia0",
        "/dev/shm",
        "/var",
        "/var/run/docker.sock",
        "/var/lib/kubelet/pods",
        "/run/containerd/containerd.sock",
        "/proc",
        "/dev/",
        "/./dev",
        "/home/../dev",
        "/dev//nvidia0",
        "//dev",
        "//",
        "//var/run",
        "///dev",
    ],
)
def test_a_directory_of_the_node_by_which_a_share_can_be_bypassed_is_denied(path: str, by: Any) -> None:
    assert denied(host_path(path), by).code == "ConflictingRequest"


@pytest.mark.parametrize("by", [policies(), NODE], ids=["pod", "node"])
@pytest.mark.parametrize(
    "path",
    [
        "/tmp/nvidia-mps",
        "/tmp/nvidia-mps/",
        "/tmp/nvidia-mps/GPU-0",
        "/tmp//nvidia-mps",
        "//tmp/nvidia-mps",
        "/tmp/./nvidia-mps",
        "/tmp/x/../nvidia-mps",
        "tmp/nvidia-mps",
        "./tmp/nvidia-mps",
        "/dev/shm/cache",
        "/dev//shm/./cache/",
    ],
)
def test_nothing_lies_where_a_container_meets_its_mps_server(path: str, by: Any) -> None:
    # The kubelet takes a path without a leading slash for one from the root.
    assert denied(mounting(path), by).code == "ConflictingRequest"


@EVERY
@pytest.mark.parametrize("path", ["/cache", "/tmp", "/dev/shm2", "/tmp/nvidia-mps-log", "/home/.cache", "/a//b"])
def test_other_mounts_pass(path: str, by: Any) -> None:
    granted(mounting(path), by)


def test_time_slicing_has_no_mps_server_to_meet() -> None:
    granted(mounting("/dev/shm"), SLICED)
    granted(mounting("/tmp/nvidia-mps"), SLICED)


def test_a_container_without_a_share_may_mount_what_it_likes() -> None:
    on = mounting("/dev/shm")
    on["spec"]["containers"].append(container("second"))
    on["metadata"]["annotations"] = {"container.gpu-share.dev/second": "0.2"}
    granted(on)


@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_a_part_of_the_pipes_is_not_the_pipes(field: str) -> None:
    pipes = {"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps"}}
    granted(mounting("/tmp/nvidia-mps", pipes))
    assert denied(mounting("/tmp/nvidia-mps", pipes, **{field: "elsewhere"})).code == "ConflictingRequest"


def test_long_paths_of_hostile_pods_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    for number in range(500):
        granted(mounting(f"/{number}/{'x' * 4_000}"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_000_000


@pytest.mark.parametrize("policy", ["mps: {attach: node}", "strategy: time-slicing"])
def test_the_hosts_ipc_is_denied_where_the_share_does_not_bring_it(policy: str) -> None:
    deny = denied(pod("0.2", hostIPC=True), policies(policy))
    assert (deny.code, "hostIPC" in deny.message) == ("ConflictingRequest", True)


def test_a_mount_that_hides_where_it_lies_is_denied() -> None:
    mounted = container(volumeMounts=[{"name": "v", "mountPath": "/data/../dev/shm"}])
    assert "without .." in denied(pod("0.2", mounted, volumes=[{"name": "v", "emptyDir": {}}])).message


@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_no_container_of_the_pod_may_be_privileged(group: str) -> None:
    bad = container("bad", securityContext={"privileged": True})
    on = pod("0.2", container(), bad) if group == "containers" else pod("0.2", initContainers=[bad])
    deny = denied(on)
    assert deny.code == "PrivilegedContainer"
    assert '"bad"' in deny.message


@pytest.mark.parametrize("context", [None, {}, {"privileged": False}, {"privileged": None, "runAsUser": 0}])
def test_other_security_contexts_pass(context: dict[str, Any] | None) -> None:
    granted(pod("0.2", container(securityContext=context)))


@pytest.mark.parametrize(
    ("policy", "users", "fits"),
    [
        ("", False, False),
        ("", True, True),
        ("", None, True),
        ("mps: {attach: node}", False, True),
        ("strategy: time-slicing", False, True),
    ],
)
def test_a_user_namespace_excludes_host_ipc_alone(policy: str, users: bool | None, fits: bool) -> None:  # noqa: FBT001
    on = pod("0.2", hostUsers=users)
    if fits:
        granted(on, policies(policy))
        return
    deny = denied(on, policies(policy))
    assert deny.code == "HostUsersConflict"
    assert "attach: node" in deny.message


@pytest.mark.parametrize("policy", ["", "mps: {attach: node}", "strategy: time-slicing"])
@pytest.mark.parametrize(
    ("name", "is_of_ipc"),
    [
        ("kernel.shm_rmid_forced", True),
        ("kernel/msgmax", True),
        ("kernel.sem", True),
        ("fs.mqueue.msg_max", True),
        ("net.core.somaxconn", False),
        ("kernel.panic", False),
    ],
)
def test_a_sysctl_of_ipc_excludes_host_ipc_alone(policy: str, name: str, *, is_of_ipc: bool) -> None:
    on = pod("0.2", securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "9"}, {"name": name}]})
    if policy or not is_of_ipc:
        granted(on, policies(policy))
        return
    deny = denied(on, policies(policy))
    assert deny.code == "ConflictingRequest"
    assert f'"{name}"' in deny.message
    assert "attach: node" in deny.message
