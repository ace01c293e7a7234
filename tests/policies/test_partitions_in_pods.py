"""What a pod gets beside its partition: no part of MPS, its memory setting, and nothing of the devices of others."""

import json

import msgspec
import pytest

from policies.contract import PARTITION_VARIABLES
from policies.ephemeral import decide_on_added
from policies.grant import Added, Denied, Grant
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, stored
from tests.policies.partitioned import MEDIUM, by
from tests.policies.pods import container, decided, mutated, pod
from webhook.patch import hiding
from webhook.preview.previewed import patch_pod

POLICY = policy(BASE)


def test_nothing_of_mps_is_attached() -> None:
    made = mutated(pod("0.2"), by(rules="mps: {attach: pod}"))
    assert "hostIPC" not in made["spec"]
    assert "volumes" not in made["spec"]
    assert "CUDA_MPS" not in json.dumps(made)


@pytest.mark.parametrize(("value", "stays"), [("0.95", True), ("0.2", True), ("1.5", False)])
def test_a_memory_setting_is_of_the_partition(value: str, stays: bool) -> None:  # noqa: FBT001 - what is expected
    serving = {"image": "vllm/vllm-openai:v0.33.0", "args": [f"--gpu-memory-utilization={value}"]}
    made = mutated(pod("0.1", {"name": "main", **serving}), by(rules="memory: {headroom: '0.02'}"))
    assert (made["spec"]["containers"][0]["args"] == serving["args"]) is stays


def test_the_variable_of_the_share_is_written_out_since_nobody_sets_it() -> None:
    on = pod("0.1", container(args=["--fraction=$(GPU_SHARE_FRACTION)", "$(GPU_SHARE_MEMORY_MIB)"]))
    grant = decided(on, by())
    assert isinstance(grant, Grant)
    assert any("with strategy: partition" in one for one in grant.warnings)
    made = mutated(on, by())
    assert made["spec"]["containers"][0]["args"][0] == "--fraction=1"


def test_no_memory_setting_is_needed() -> None:
    made = mutated(pod("0.1", {"name": "main", "image": "vllm/vllm-openai:v0.33.0"}), by())
    assert "args" not in made["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100", {"NVIDIA_VISIBLE_DEVICES": "void"}),
        ("mi300x", {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none"}),
        ("gaudi", {"NVIDIA_VISIBLE_DEVICES": "void", "HABANA_VISIBLE_DEVICES": "none"}),
    ],
)
def test_a_container_without_a_share_sees_no_device_of_the_maker(name: str, expected: dict[str, str]) -> None:
    made = mutated(pod("0.1", container("a"), container("b"), initContainers=[container("i")]), by(name))
    for hidden in (made["spec"]["containers"][1], made["spec"]["initContainers"][0]):
        assert {one["name"]: one["value"] for one in hidden["env"]} == expected
    assert "env" not in made["spec"]["containers"][0]


@pytest.mark.parametrize("variable", sorted(PARTITION_VARIABLES | {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}))
@pytest.mark.parametrize("of", [0, 1])
def test_a_variable_that_chooses_devices_is_denied_in_every_container(variable: str, of: int) -> None:
    containers = [container("a"), container("b")]
    containers[of]["env"] = [{"name": variable, "value": "all"}]
    decision = decided(pod("0.1", *containers), by("mi300x"))
    assert isinstance(decision, Denied)
    assert decision.deny.code == "ReservedEnvironment"
    shares = decided(pod("0.1", *containers))
    assert isinstance(shares, Grant) is (variable in PARTITION_VARIABLES)  # which say nothing under MPS


@pytest.mark.parametrize(
    ("prefix", "denied"), [("AMD_", False), ("HABANA", False), ("HABANA_VIS", True), ("ROCR_VISIBLE_DEVICES", True)]
)
def test_a_prefix_that_makes_such_variables_is_denied_by_both(prefix: str, denied: bool) -> None:  # noqa: FBT001
    source = {"prefix": prefix, "configMapRef": {"name": "x"}}
    on = pod("0.1", container("a", envFrom=[source]))
    made = decided(on, by("mi300x", "environment: {envFrom: allow}"))
    assert isinstance(made, Denied) is denied
    granted = mutated(pod("0.1", container("a")), by("mi300x"))
    granted["spec"]["containers"][0]["envFrom"] = [source]
    assert bool(POLICY.denials(stored(granted))) is denied


def test_an_ephemeral_container_sees_no_device_of_any_maker() -> None:
    before = mutated(pod("0.1"), by("mi300x"))
    after = {**before, "spec": {**before["spec"], "ephemeralContainers": [container("debug")]}}
    old, new = (msgspec.convert(one, Pod) for one in (before, after))
    added = decide_on_added(new, old, "team", by("mi300x"))
    assert isinstance(added, Added)
    made = patch_pod(after, hiding(added))
    values = {one["name"]: one["value"] for one in made["spec"]["ephemeralContainers"][0]["env"]}
    assert values == {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none", "HABANA_VISIBLE_DEVICES": "none"}


def test_the_grant_says_what_was_granted() -> None:
    made = mutated(pod("0.2"), by())
    assert json.loads(made["metadata"]["annotations"]["gpu-share.dev/grant"]) == {
        "policy": "_default",
        "strategy": "partition",
        "partition": "h100",
        "containers": {"main": {"resource": MEDIUM, "count": 1, "share": "0.2"}},
    }
