"""What a pod is given where the namespace's shares are allocated by DRA: one device of a size, by the same policy."""

import json
from typing import Any

import pytest

from tests.policies.pods import (
    GPU,
    TIMESLICED,
    VGPU,
    container,
    denied,
    granted,
    limited,
    mutated,
    only_container,
    pod,
    policies,
    vgpus,
)

BY_DRA = policies("allocation: dra\nshare: {maximum: '8', podMaximum: '8'}")
WHOLE = policies("allocation: dra\nshare: {maximum: '8', podMaximum: '8', whole: gpus}")
SLICED = policies("allocation: dra\nstrategy: time-slicing\nshare: {maximum: '8', podMaximum: '8'}")
DEVICE_PLUGIN = policies()
FIFTH = "gpu-share.dev/share-200m"
IMPLICIT = "deviceclass.resource.kubernetes.io/share-200m.gpu-share.dev"


def resources(on: dict[str, Any], by: Any = BY_DRA) -> Any:
    return only_container(mutated(on, by))["resources"]


@pytest.mark.parametrize(
    ("on", "resource"),
    [
        (pod("0.2"), FIFTH),
        (pod("0.25"), "gpu-share.dev/share-300m"),
        (pod("1"), "gpu-share.dev/share-1000m"),
        (pod(None, limited(quantity="2")), FIFTH),
        (pod("0.2", limited(quantity="2000m")), FIFTH),
        (pod(None, limited(quantity=1, resource=FIFTH)), FIFTH),
        (pod("0.2", limited(quantity="1", resource=FIFTH)), FIFTH),
    ],
)
def test_a_share_is_one_device_of_its_size_however_it_was_asked_for(on: dict[str, Any], resource: str) -> None:
    made = resources(on)
    assert {name: int(count) for name, count in made["limits"].items()} == {resource: 1}
    assert {name: int(count) for name, count in made["requests"].items()} == {resource: 1}


@pytest.mark.parametrize(
    ("on", "by", "resource"),
    [
        (pod("2"), WHOLE, "gpu-share.dev/share-2000m-whole"),
        (pod(None, limited(quantity=2, resource=GPU)), WHOLE, "gpu-share.dev/share-2000m-whole"),
        (pod(None, limited(quantity=1, resource="gpu-share.dev/share-2000m-whole")), WHOLE, None),
        (pod("0.5"), WHOLE, "gpu-share.dev/share-500m"),
        (pod(None, limited(quantity=1, resource="gpu-share.dev/share-1000m")), WHOLE, None),
        (pod("0.2"), SLICED, "gpu-share.dev/share-200m-timesliced"),
        (pod("3"), SLICED, "gpu-share.dev/share-3000m-timesliced"),
        (pod(None, limited(quantity=20, resource=TIMESLICED)), SLICED, "gpu-share.dev/share-2000m-timesliced"),
    ],
)
def test_the_size_says_how_the_gpu_is_shared(on: dict[str, Any], by: Any, resource: str | None) -> None:
    asked = only_container(on).get("resources", {}).get("limits", {})
    assert list(resources(on, by)["limits"]) == [resource or next(iter(asked))]


def test_the_grant_names_the_resource_of_each_container() -> None:
    written = mutated(pod("0.2", container("a"), container("b")), BY_DRA)["metadata"]["annotations"]
    assert json.loads(written["gpu-share.dev/grant"]) == {
        "policy": "_default",
        "strategy": "mps",
        "attach": "pod",
        "allocation": "dra",
        "containers": {"a": {"resource": FIFTH, "share": "0.2"}},
    }
    assert f'"a":{{"resource":"{FIFTH}",' in written["gpu-share.dev/grant"]


@pytest.mark.parametrize(
    ("on", "code", "words"),
    [
        (pod(None, limited(quantity=2, resource=FIFTH)), "ShareMalformed", "of which one is a share"),
        (pod(None, limited(quantity=1, resource="gpu-share.dev/share-250m")), "ShareMalformed", "10 parts"),
        (pod(None, limited(quantity="0.5", resource=FIFTH)), "ShareMalformed", "whole vGPUs"),
        (pod("0.3", limited(quantity=1, resource=FIFTH)), "ConflictingRequest", "that is 3 vGPUs"),
        (pod(None, limited(quantity=1, resource="gpu-share.dev/share-2000m")), "ShareAboveMaximum", "one GPU"),
        (pod(None, limited(quantity=1, resource=IMPLICIT)), "ConflictingRequest", "deviceclass.resource"),
        (pod(None, limited(quantity=1, resource=f"{FIFTH}-timesliced")), "ConflictingRequest", "not what shares"),
        (pod("0.2", limited(quantity=1, resource=TIMESLICED)), "ConflictingRequest", "this namespace's strategy"),
        (pod("0.2", container(resources={"limits": {VGPU: 2, FIFTH: 1}})), "ConflictingRequest", " and "),
        (pod("0.2", container(resources={"requests": {FIFTH: 1}})), "ConflictingRequest", "its limit says nothing"),
    ],
)
def test_a_limit_that_is_no_share_here_is_denied(on: dict[str, Any], code: str, words: str) -> None:
    deny = denied(on, policies("allocation: dra\nshare: {maximum: '9', podMaximum: '9'}"))
    assert deny.code == code
    assert words in deny.message


def test_more_gpus_than_are_allocated_together_are_denied() -> None:
    on = pod(None, limited(quantity=1, resource="gpu-share.dev/share-9000m-timesliced"))
    deny = denied(on, policies("allocation: dra\nstrategy: time-slicing\nshare: {maximum: '9', podMaximum: '9'}"))
    assert (deny.code, "at most 8" in deny.message) == ("ShareAboveMaximum", True)


@pytest.mark.parametrize("resource", [FIFTH, IMPLICIT, "gpu-share.dev/share-", "gpu-share.dev/share-200m-whole"])
def test_where_the_device_plugin_allocates_no_pod_gets_a_size_of_dra(resource: str) -> None:
    deny = denied(pod(None, limited(quantity=1, resource=resource)), DEVICE_PLUGIN)
    assert deny.code == "ConflictingRequest"
    assert denied(pod("0.2", container(), limited("b", 1, resource)), DEVICE_PLUGIN).code == "ConflictingRequest"


def test_a_grid_that_is_too_fine_is_the_policys_fault_and_not_the_pods() -> None:
    deny = denied(pod("0.2"), policies("allocation: dra", "vgpusPerGpu: 100"))
    assert deny.code == "SharingDisabled"
    assert "_default.yaml:1" in deny.message


HALF = "allocation: dra\nshare: {podMaximum: '0.5'}"


@pytest.mark.parametrize(
    ("shares", "kinds", "total"),
    [
        ({"a": "0.2", "b": "0.3"}, "aa", "0.5"),
        ({"i": "0.3", "a": "0.3"}, "ia", "0.3"),  # the init container uses the device of the app
        ({"i": "0.2", "a": "0.3"}, "ia", "0.5"),  # the claim holds both from the pod's start to its end
        ({"i": "0.2", "j": "0.2", "a": "0.3"}, "iia", "0.5"),  # one more for both init containers
        ({"s": "0.2", "i": "0.2", "a": "0.1"}, "sia", "0.5"),  # what comes before it is not there to use
        ({"i": "0.1", "s": "0.2", "j": "0.2", "a": "0.2"}, "isia", "0.5"),
    ],
)
def test_a_pod_holds_what_its_claim_holds(shares: dict[str, str], kinds: str, total: str) -> None:
    made = {
        "i": container,
        "s": lambda name: container(name, restartPolicy="Always"),
        "a": container,
    }
    built = [(kind, made[kind](name)) for name, kind in zip(shares, kinds, strict=True)]
    apps = [one for kind, one in built if kind == "a"]
    annotations = {f"container.gpu-share.dev/{name}": share for name, share in shares.items()}
    on = pod(None, *apps, annotations=annotations, initContainers=[one for kind, one in built if kind != "a"])
    assert set(vgpus(granted(on, policies(HALF)))) == set(shares)
    less = f"allocation: dra\nshare: {{podMaximum: '{float(total) - 0.1:.1f}', maximum: '0.3'}}"
    assert denied(on, policies(less)).code == "PodShareAboveMaximum"
    assert total in denied(on, policies(less)).message


def test_a_pod_of_the_device_plugin_is_asked_for_what_it_holds_at_once() -> None:
    on = pod("0.3", initContainers=[container("i")], annotations={"container.gpu-share.dev/i": "0.2"})
    assert granted(on, policies("share: {podMaximum: '0.3'}")).allocation == "device-plugin"


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("--fraction=$(GPU_SHARE_FRACTION)", "--fraction=0.2"),
        ("$(GPU_SHARE_FRACTION)$(GPU_SHARE_FRACTION)", "0.20.2"),
        ("$$(GPU_SHARE_FRACTION)", "$$(GPU_SHARE_FRACTION)"),
        ("$$$(GPU_SHARE_FRACTION)", "$$0.2"),
        ("$GPU_SHARE_FRACTION ${GPU_SHARE_FRACTION}", "$GPU_SHARE_FRACTION ${GPU_SHARE_FRACTION}"),
    ],
)
def test_a_variable_that_the_kubelet_cannot_expand_is_written_out(word: str, written: str) -> None:
    on = pod("0.2", container(command=["run", word], args=[word]))
    after = only_container(mutated(on, BY_DRA))
    assert (after["command"], after["args"]) == (["run", written], [written])
    assert only_container(mutated(on, DEVICE_PLUGIN))["args"] == [word]


def test_an_argument_that_is_lowered_is_not_written_over() -> None:
    on = pod(
        "0.2", container(image="vllm/vllm-openai:v0.11.0", args=["--gpu-memory-utilization=$(GPU_SHARE_FRACTION)"])
    )
    assert only_container(mutated(on, BY_DRA))["args"] == ["--gpu-memory-utilization=0.2"]


def test_a_variable_whose_value_depends_on_the_gpu_is_warned_of() -> None:
    (warning,) = granted(pod("0.2", container(args=["--mib=$(GPU_SHARE_MEMORY_MIB)"])), BY_DRA).warnings
    assert "read the variable in the program" in warning
