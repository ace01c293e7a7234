"""A share of a whole GPU: as all vGPUs of one, or as a GPU that is offered whole."""

import json
from typing import Any

import msgspec
import pytest

from policies.pod import Pod
from policies.policy_set import PolicySet
from tests.policies.pods import (
    GPU,
    TIMESLICED,
    VGPU,
    container,
    denied,
    environment,
    granted,
    limited,
    mutated,
    only_container,
    pod,
    policies,
    untouched,
    vgpus,
)
from webhook.patch import operations

LARGE = "share: {maximum: '4', podMaximum: '4'}"
VGPUS = policies(LARGE)
GPUS = policies("share: {maximum: '4', podMaximum: '4', whole: gpus}")
SLICED = policies("strategy: time-slicing\nshare: {maximum: '4', podMaximum: '4', whole: gpus}")


def named(**shares: str) -> dict[str, str]:
    return {f"container.gpu-share.dev/{name}": share for name, share in shares.items()}


AS_GPUS: list[tuple[dict[str, Any], dict[str, int]]] = [
    (pod("1"), {"main": 1}),
    (pod("100%"), {"main": 1}),
    (pod("2"), {"main": 2}),
    (pod(None, limited(quantity=1, resource=GPU)), {"main": 1}),
    (pod(None, limited(quantity="2000m", resource=GPU)), {"main": 2}),
    (pod("1", limited(quantity="1", resource=GPU)), {"main": 1}),
    (pod("1", container("a"), limited("b", 1, GPU)), {"a": 1, "b": 1}),
    (pod("1", container("a"), container("b"), annotations=named(b="2")), {"a": 1, "b": 2}),
    (pod("1", container("a"), container("b")), {"a": 1}),
    (pod(None, initContainers=[limited("i", 1, GPU)]), {"i": 1}),
    (pod("1", initContainers=[limited("i", 1, GPU, restartPolicy="Always")]), {"i": 1, "main": 1}),
    (pod("1", limited(quantity="0")), {"main": 1}),  # a limit of zero names nothing
]
AS_VGPUS: list[tuple[dict[str, Any], dict[str, int]]] = [
    (pod("0.2"), {"main": 2}),
    (pod("0.95"), {"main": 10}),
    (pod("1", container("a"), container("b"), annotations=named(b="0.2")), {"a": 10, "b": 2}),
    (pod(None, limited(quantity=10)), {"main": 10}),
    (pod("1", limited(quantity="10")), {"main": 10}),
    (pod("1", container("a"), limited("b", 10)), {"a": 10, "b": 10}),
    (pod("1", container("a"), limited("b", 1)), {"a": 10, "b": 1}),
    (pod("0.2", limited(quantity=2), limited("b", 0, GPU)), {"main": 2}),
]


@pytest.mark.parametrize(("on", "expected"), AS_GPUS)
@pytest.mark.parametrize("by", [GPUS, SLICED], ids=["mps", "time-slicing"])
def test_a_pod_of_whole_shares_gets_whole_gpus_where_the_policy_says_so(
    on: dict[str, Any], expected: dict[str, int], by: PolicySet
) -> None:
    grant = granted(on, by)
    assert (grant.strategy, grant.resource, grant.vgpus_per_gpu) == ("whole", GPU, 1)
    assert vgpus(grant) == expected
    assert not grant.attaches_in_pod


@pytest.mark.parametrize(("on", "expected"), AS_VGPUS)
def test_a_part_of_a_gpu_or_a_limit_in_vgpus_brings_vgpus_for_the_whole_pod(
    on: dict[str, Any], expected: dict[str, int]
) -> None:
    grant = granted(on, GPUS)
    assert (grant.strategy, grant.resource, grant.vgpus_per_gpu) == ("mps", VGPU, 10)
    assert vgpus(grant) == expected


def test_vgpus_are_the_default() -> None:
    grant = granted(pod("1"), VGPUS)
    assert (grant.strategy, vgpus(grant)) == ("mps", {"main": 10})


@pytest.mark.parametrize("on", [on for on, _ in (*AS_GPUS, *AS_VGPUS)])
def test_a_second_look_at_a_granted_pod_changes_nothing(on: dict[str, Any]) -> None:
    after = mutated(on, GPUS)
    again = granted(after, GPUS)
    assert operations(msgspec.convert(after, Pod), again) == []
    assert vgpus(again) == vgpus(granted(on, GPUS))


def test_nothing_of_mps_comes_with_a_whole_gpu() -> None:
    after = mutated(pod("1", container(image="vllm/vllm-openai:v0.11.0", args=["--model", "m"]), container("b")), GPUS)
    first, second = after["spec"].pop("containers")
    assert after["spec"] == {}
    assert first["resources"] == {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    assert first["args"] == ["--model", "m"]
    assert set(first) == {"name", "image", "args", "resources"}
    assert environment(second) == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert after["metadata"]["labels"] == {"gpu-share.dev/shared": "true"}
    assert json.loads(after["metadata"]["annotations"]["gpu-share.dev/grant"]) == {
        "policy": "_default",
        "strategy": "whole",
        "resource": GPU,
        "containers": {"main": {"vgpus": 1, "share": "1", "of": 1}},
    }


def test_placement_holds_for_whole_gpus_too() -> None:
    by = policies("share: {whole: gpus}\nplacement: {nodeSelector: {gpu: h200}, runtimeClassName: nvidia}")
    spec = mutated(pod("1"), by)["spec"]
    assert (spec["nodeSelector"], spec["runtimeClassName"]) == ({"gpu": "h200"}, "nvidia")
    assert denied(pod("1", runtimeClassName="kata"), by).code == "ConflictingRequest"


@pytest.mark.parametrize("image", ["tensorflow/tensorflow", "lmsysorg/sglang", "cupy/cupy", "pytorch/pytorch:2.10.0"])
def test_no_framework_is_told_anything_about_a_whole_gpu(image: str) -> None:
    by = policies("share: {whole: gpus, minimum: '0.1'}\nmemory: {headroom: '0.05'}")
    one = only_container(mutated(pod("1", container(image=image)), by))
    assert set(one) == {"name", "image", "resources"}
    assert granted(pod("1", container(image=image)), by).warnings == ()


def test_a_memory_setting_above_all_of_the_gpu_is_lowered() -> None:
    on = pod("1", container(image="vllm/vllm-openai:v0.11.0", args=["--gpu-memory-utilization=1.5"]))
    assert only_container(mutated(on, GPUS))["args"] == ["--gpu-memory-utilization=1"]


@pytest.mark.parametrize("field", ["limits", "requests"])
@pytest.mark.parametrize("where", ["containers", "initContainers"])
@pytest.mark.parametrize("quantity", [1, "1", "1k", "0.5", "nonsense"])
def test_the_whole_resource_is_denied_where_whole_gpus_are_given_as_vgpus(
    where: str, field: str, quantity: Any
) -> None:
    asking = container("greedy", resources={field: {GPU: quantity}})
    on = pod(None, asking) if where == "containers" else pod(None, initContainers=[asking])
    deny = denied(on, policies(team="mode: enforce\nshare: {whole: vgpus}"))
    assert deny.code == "ConflictingRequest"
    assert f'"greedy" asks for {GPU}' in deny.message
    assert "(team.yaml:2)" in deny.message
    assert deny.message.endswith(f'Ask for 10 {VGPU} for each GPU, or by the annotation gpu-share: "1".')
    assert "(built-in default)" in denied(on).message


CONFLICTS: list[tuple[dict[str, Any], str]] = [
    (pod(None, container(resources={"limits": {VGPU: 10, GPU: 1}})), f'"main" asks for {VGPU} in a pod that is given'),
    (pod("1", container(resources={"limits": {VGPU: 10, GPU: 1}})), f'"main" asks for {VGPU} in a pod that is given'),
    (pod(None, limited("a", 1, GPU), limited("b", 2)), f'"b" asks for {VGPU} in a pod that is given whole GPUs'),
    (pod(None, limited("a", 2), initContainers=[limited("b", 1, GPU)]), f'"a" asks for {VGPU} in a pod'),
    (pod(None, limited("a", 1, GPU), container("b", resources={"requests": {VGPU: 1}})), f'"b" asks for {VGPU} in a'),
    (pod("0.2", limited(quantity=1, resource=GPU)), "0.2 of a GPU"),
    (pod(None, limited("a", 1, GPU), container("b"), annotations=named(b="0.999")), "0.999 of a GPU"),
    (pod("2", limited(quantity=1, resource=GPU)), "2 whole GPUs, but its limit"),
    (pod("1", limited(quantity=2, resource=GPU)), "1 whole GPU, but its limit"),
    (pod("1", limited(quantity=0, resource=GPU)), "1 whole GPU, but its limit"),
    (pod("1", limited(quantity="1k", resource=GPU)), "says 1000"),
    (pod(None, container(resources={"requests": {GPU: 1}})), "its limit says nothing"),
    (pod("1", container(resources={"limits": {GPU: 1}, "requests": {GPU: 2}})), "requests 2"),
    (pod(None, container(resources={"limits": {GPU: 1, TIMESLICED: 1}})), f'"main" asks for {TIMESLICED} in a pod'),
    (pod(None, limited(quantity=1, resource=TIMESLICED)), TIMESLICED),
    (pod("1", limited("a", 1, TIMESLICED)), TIMESLICED),
    (pod("1", container(resources={"limits": {"nvidia.com/gpu": 1}})), "nvidia.com/gpu"),
    (pod(None, limited("a", 1, GPU), limited("b", 1, "nvidia.com/gpu")), "nvidia.com/gpu"),
    (pod("1", hostIPC=True), "hostIPC"),
    (pod("1", volumes=[{"name": "p", "hostPath": {"path": "/tmp/nvidia-mps"}}]), "/tmp/nvidia-mps"),
]


@pytest.mark.parametrize(("on", "words"), CONFLICTS)
def test_a_pod_gets_one_kind_of_gpus_and_agrees_with_itself(on: dict[str, Any], words: str) -> None:
    deny = denied(on, GPUS)
    assert deny.code == "ConflictingRequest"
    assert words in deny.message


@pytest.mark.parametrize("quantity", ["0.5", "-1", "NaN", "two", "500m", "9" * 50])
def test_a_limit_that_is_no_whole_number_of_gpus_is_denied(quantity: str) -> None:
    deny = denied(pod(None, limited(quantity=quantity, resource=GPU)), GPUS)
    assert deny.code == "ShareMalformed"
    assert "which counts GPUs" in deny.message


def test_a_limit_of_zero_gpus_asks_for_nothing() -> None:
    untouched(pod(None, limited(quantity="0", resource=GPU)), GPUS)
    assert vgpus(granted(pod("0.2", limited(quantity=2), limited("b", "0", GPU)))) == {"main": 2}


@pytest.mark.parametrize(
    ("on", "code", "line", "words"),
    [
        (pod("3"), "ShareAboveMaximum", 2, "asks for 3 of a GPU, at most 2"),
        (pod(None, limited(quantity=3, resource=GPU)), "ShareAboveMaximum", 2, "asks for 3 whole GPUs, at most 2"),
        (pod(None, limited(quantity="1k", resource=GPU)), "ShareAboveMaximum", 2, "asks for 1000 whole GPUs"),
        (pod("2", container("a"), limited("b", 2, GPU)), "PodShareAboveMaximum", 3, "ask for 4 of a GPU, at most 3"),
        (pod(None, limited("a", 1, GPU), limited("b", 2)), "ConflictingRequest", 4, '"b" asks for gpu-share.dev/vgpu'),
    ],
)
def test_a_denial_names_the_line_that_forbids_it(on: dict[str, Any], code: str, line: int, words: str) -> None:
    deny = denied(on, policies(team="share:\n  maximum: '2'\n  podMaximum: '3'\n  whole: gpus"))
    assert (deny.code, f"(team.yaml:{line})" in deny.message) == (code, True)
    assert words in deny.message


def test_a_whole_gpu_is_too_little_where_the_smallest_share_is_more() -> None:
    by = policies("share: {minimum: '2', maximum: '4', whole: gpus}")
    assert denied(pod(None, limited(quantity=1, resource=GPU)), by).code == "ShareBelowMinimum"
    assert vgpus(granted(pod("2"), by)) == {"main": 2}


def test_whole_gpus_run_one_after_the_other_in_init_containers() -> None:
    by = policies("share: {whole: gpus}")
    granted(pod("1", initContainers=[limited("i", 1, GPU)]), by)
    sidecar = [limited("i", 1, GPU, restartPolicy="Always")]
    assert denied(pod("1", initContainers=sidecar), by).code == "PodShareAboveMaximum"


def test_a_cluster_may_call_whole_gpus_otherwise() -> None:
    cluster = "resourceNames: {whole: example.com/card}\nvgpusPerGpu: 7"
    by, asking = policies("share: {whole: gpus}", cluster), pod(None, limited(quantity=1, resource="example.com/card"))
    assert granted(pod("1"), by).resource == "example.com/card"
    assert vgpus(granted(asking, by)) == {"main": 1}
    untouched(pod(None, limited(quantity=1, resource=GPU)), by)
    assert "Ask for 7 gpu-share.dev/vgpu" in denied(asking, policies(cluster=cluster)).message


HOSTILE = ["x" * 10_000, "a\nb", "\x1b[31m", "\U0001f600" * 300, 'say "hi"', "\u202e"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_no_message(name: str) -> None:
    long = f"{'a' * 60}.example/{'b' * 50}"
    named_long = f"resourceNames: {{whole: {long}, mps: {long}c}}"
    by = policies("share: {whole: gpus, maximum: '4'}", named_long)
    for on in (
        pod(None, limited(name, 1, long), limited("b", 1, f"{long}c")),
        pod(None, limited(name, 1, long), container("b"), annotations=named(b="0.2")),
        pod(None, limited("b", 1, long), container(name), annotations={f"container.gpu-share.dev/{name}": "0.2"}),
        pod(None, limited(name, "9" * 24, long)),
        pod(None, limited(name, "1e99", long)),
        pod(None, limited(name, name, long)),
    ):
        assert denied(on, by).message.isprintable()
        assert denied(on, policies(cluster=named_long)).message.isprintable()
