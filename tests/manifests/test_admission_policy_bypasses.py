"""The policy in the API server denies what could bypass a share, whether a user or another webhook added it."""

import pytest

from policies import contract
from policies.grant import Denied
from policies.policy_set import PolicySet
from tests.manifests.admission import BASE, policy, policy_spec, stored
from tests.manifests.granted_pods import GPUS, GRANTED, NODE, SLICED, first_sharing, one
from tests.manifests.render import Object
from tests.policies.pods import container, decided, mutated, only_container, pod, policies

POLICY = policy(BASE)
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
RESERVED = [
    *sorted(contract.RESERVED_VARIABLES),
    *(f"{prefix}ANYTHING" for prefix in contract.RESERVED_VARIABLE_PREFIXES),
]


@pytest.mark.parametrize("variable", RESERVED)
@pytest.mark.parametrize("source", [{"value": "all"}, {"value": "void"}, {"valueFrom": {"fieldRef": {}}}, {}])
def test_a_container_with_a_share_may_not_set_a_reserved_variable(variable: str, source: Object) -> None:
    for name in GRANTED if source == {"value": "all"} else ("one", "two shares"):
        on = one(name)
        first_sharing(on).setdefault("env", []).append({"name": variable, **source})
        assert any("A container with a GPU share sets a reserved variable" in text for text in POLICY.denials(on)), name


@pytest.mark.parametrize("group", ["containers", "initContainers"])
@pytest.mark.parametrize("variable", RESERVED)
def test_no_other_container_of_the_pod_may_set_a_reserved_variable(variable: str, group: str) -> None:
    on = one("one")
    on["spec"].setdefault(group, []).append(container("other", env=[VOID, {"name": variable, "value": "all"}]))
    (said,) = POLICY.denials(on)
    assert said.startswith("A container without a GPU share, in a pod with one, sets a reserved variable")


@pytest.mark.parametrize("group", ["containers", "initContainers"])
@pytest.mark.parametrize("env", [{}, {"env": []}, {"env": [{"name": "A", "value": "void"}]}])
def test_a_container_that_comes_after_the_webhook_must_hide_the_gpus_itself(env: Object, group: str) -> None:
    for name in GRANTED:
        on = one(name)
        on["spec"].setdefault(group, []).append(container("late", **env))
        (said,) = POLICY.denials(on)
        assert said.startswith("A container without a GPU share, in a pod with one, must have NVIDIA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("source", "passes"),
    [({"value": "void"}, True), ({"value": "none"}, False), ({"value": "VOID"}, False), ({"valueFrom": {}}, False)],
)
def test_another_container_may_set_visible_devices_to_void(source: Object, *, passes: bool) -> None:
    on = one("one")
    on["spec"]["containers"].append(container("other", env=[{"name": "NVIDIA_VISIBLE_DEVICES", **source}]))
    assert (POLICY.denials(on) == []) is passes


def test_variables_that_are_not_reserved_are_admitted() -> None:
    on = one("one")
    only_container(on)["env"] = [{"name": name, "value": "1"} for name in ("CUDA_MPS", "NVIDIA_TF32_OVERRIDE", "A")]
    assert POLICY.denials(on) == []


def test_the_policy_reserves_what_the_contract_reserves() -> None:
    text = " ".join(one["expression"] for one in policy_spec(BASE)["validations"])
    reserved = [*contract.RESERVED_VARIABLES, *contract.RESERVED_VARIABLE_PREFIXES]
    assert all(text.count(f"'{name}'") >= 2 for name in reserved)


@pytest.mark.parametrize(
    "resource",
    ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "gpu.intel.com/i915"],
)
@pytest.mark.parametrize("fields", [("limits", "requests"), ("limits",), ("requests",)])
@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_a_gpu_of_another_device_plugin_beside_a_share_is_denied(
    resource: str, fields: tuple[str, ...], group: str
) -> None:
    on = one("two containers")
    on["spec"].setdefault(group, []).append(
        container("other", env=[VOID], resources={field: {"cpu": "1", resource: "1"} for field in fields})
    )
    assert POLICY.denials(on) == [
        "A pod has GPUs of gpu-share or of another device plugin, never both: remove one of the two from its resources."
    ]


@pytest.mark.parametrize("name", ["one, attached by the node", "one, in turns", "a whole GPU"])
def test_host_ipc_needs_a_grant_that_says_so(name: str) -> None:
    assert one("one")["spec"]["hostIPC"] is True
    on = one(name)
    on["spec"]["hostIPC"] = True
    (said,) = POLICY.denials(on)
    assert said.startswith("A pod with a GPU share may have hostIPC only where the namespace's policy says")
    on["spec"]["hostIPC"] = False
    assert POLICY.denials(on) == []


def with_paths(kind: str, path: str, share: str) -> Object:
    if kind == "hostPath":
        mounts, volume = [], {"name": "data", "hostPath": {"path": path}}
    else:
        mounts, volume = [{"name": "data", "mountPath": path}], {"name": "data", "emptyDir": {}}
    return pod(share, container(volumeMounts=mounts), volumes=[volume])


PATHS = [
    "/",
    "//",
    "/tmp",
    "/tmp/",
    "/tmp/./",
    "/dev",
    "/dev/",
    "//dev",
    "/./dev",
    "/dev/nvidia0",
    "/dev//nvidia0",
    "/dev/shm",
    "//dev/shm/",
    "/dev/./shm/.",
    "dev/shm",
    "./dev/shm",
    "/dev/shm2",
    "/dev/shm/cache",
    "/dev/.//shm/./cache",
    "/device",
    "/proc",
    "/sys/fs/cgroup",
    "/system",
    "/run",
    "/run/containerd/containerd.sock",
    "/runner",
    "/var",
    "/var/",
    "/var/run/docker.sock",
    "/var/lib",
    "/var//lib/./kubelet",
    "/var/lib/kubelet/pods",
    "/var/lib/kubelet-data",
    "/var/lib/containerd",
    "/var/lib/models",
    "/var/log",
    "/etc",
    "/etc/kubernetes/pki",
    "/etc/ssl",
    "/tmp/nvidia-mps",
    "/tmp/nvidia-mps/",
    "/tmp/./nvidia-mps",
    "/tmp/nvidia-mps/GPU-0",
    "/tmp/nvidia-mps-log",
    "/tmp/models",
    "/data",
    "/mnt/dev",
    "/home/.cache",
    "/.dev",
    "/a//b",
]


SHARED_MEMORY = ["/dev/shm", "/dev/shm/", "//dev/shm", "//dev/shm/", "/dev/./shm/.", "dev/shm", "./dev/shm"]
KEPT = policies("mps: {sharedMemory: deny}")
KEPT_NODE = policies("mps: {attach: node, sharedMemory: deny}")


@pytest.mark.parametrize("by", [KEPT, KEPT_NODE, SLICED, GPUS], ids=["pod", "node", "time-slicing", "whole"])
@pytest.mark.parametrize("kind", ["hostPath", "mountPath"])
@pytest.mark.parametrize("path", PATHS)
def test_webhook_and_policy_agree_on_paths(kind: str, path: str, by: PolicySet) -> None:
    share = "1" if by is GPUS else "0.2"
    on = with_paths(kind, path, share)
    after = stored(mutated(pod(share, container(volumeMounts=[])), by))
    after["spec"]["volumes"] = on["spec"]["volumes"] + after["spec"].get("volumes", [])
    mounts = only_container(after).setdefault("volumeMounts", [])
    mounts.extend(only_container(on)["volumeMounts"])
    assert (POLICY.denials(after) != []) == isinstance(decided(on, by), Denied)


@pytest.mark.parametrize("by", [policies(), NODE], ids=["pod", "node"])
@pytest.mark.parametrize("path", SHARED_MEMORY)
def test_the_policy_admits_a_pod_whose_shared_memory_was_replaced_and_denies_it_before(
    path: str, by: PolicySet
) -> None:
    on = with_paths("mountPath", path, "0.2")
    after = stored(mutated(on, by))
    assert POLICY.denials(after) == []
    only_container(after).setdefault("volumeMounts", []).extend(only_container(on)["volumeMounts"])
    (said,) = POLICY.denials(after)
    assert "over the MPS pipe directory or /dev/shm" in said


def test_a_mount_path_with_two_dots_is_denied() -> None:
    on = one("other volumes")
    only_container(on)["volumeMounts"][0]["mountPath"] = "/x/../tmp/nvidia-mps"
    assert POLICY.denials(on) != []


@pytest.mark.parametrize(
    "change",
    [
        {"securityContext": {"privileged": True}},
        {"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}},
        {"securityContext": {"capabilities": {"add": ["cap_sys_rawio"]}}},
        {"securityContext": {"capabilities": {"add": ["ALL"]}}},
        {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
        {"securityContext": {"capabilities": {"drop": ["ALL"]}}},
        {"securityContext": {"privileged": False}},
        {"securityContext": {}},
    ],
)
@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_webhook_and_policy_agree_on_privileges(change: Object, group: str) -> None:
    written, after = pod("0.2"), one("one")
    for on in (written, after):
        on["spec"].setdefault(group, []).append(container("other", env=[VOID], **change))
    assert (POLICY.denials(after) != []) == isinstance(decided(written), Denied)


def test_host_pid_is_denied() -> None:
    on = one("one")
    on["spec"]["hostPID"] = True
    assert POLICY.denials(on) == [
        "A pod with a GPU share may not have hostPID, which gives access to processes of other pods: remove hostPID."
    ]


def test_every_variable_of_every_container_is_validated() -> None:
    env = [{"name": f"VARIABLE_{number}", "value": "x"} for number in range(20)]
    others = [container(f"c{number}", env=env) for number in range(20)]
    on = stored(mutated(pod("0.2", container(), *others)))
    assert POLICY.denials(on) == []
    on["spec"]["containers"][-1]["env"][-1]["name"] = "CUDA_MPS_PIPE_DIRECTORY"
    assert len(POLICY.denials(on)) == 1
