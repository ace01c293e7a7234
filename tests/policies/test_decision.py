import re
import typing
from typing import Any

import pytest

from policies.denial import Code
from tests.policies.pods import (
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

STRICT = """\
share:
  minimum: "0.1"
  maximum: "0.5"
  podMaximum: "0.6"
  rounding: exact
frameworks: {onConflict: deny}
environment: {reserved: deny}
mps: {attach: pod}
devices: [gpu]
"""
GREEDY = container(image="vllm/vllm-openai:v0.11.0", args=["--gpu-memory-utilization=0.9"])
ALL = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]

DENIED: list[tuple[str, dict[str, Any]]] = [
    ("ShareMalformed", pod("0,2")),
    ("ShareMalformed", pod(None, limited(quantity="0.5"))),
    ("ShareBelowMinimum", pod("0.05")),
    ("ShareAboveMaximum", pod("0.51")),
    (
        "PodShareAboveMaximum",
        pod("0.4", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.3"}),
    ),
    ("NotWholeVgpus", pod("0.25")),
    ("UnknownContainer", pod(None, annotations={"container.gpu-share.dev/x": "0.2"})),
    ("DeviceNotAllowed", pod("0.2", annotations={"gpu-share.dev/device": "mig-1g.10gb"})),
    ("ConflictingRequest", pod("0.2", limited(quantity=3))),
    ("ReservedEnvironment", pod("0.2", container(env=ALL))),
    ("ReservedAnnotation", pod("0.2", annotations={"cdi.k8s.io/gpu": "nvidia.com/gpu=all"})),
    ("PrivilegedContainer", pod("0.2", container(securityContext={"privileged": True}))),
    ("HostUsersConflict", pod("0.2", hostUsers=False)),
    ("MemoryArgumentAboveShare", pod("0.2", GREEDY)),
    ("PodTooLarge", pod("0.2", container(args=["x"] * 5000))),
]


# What is wrong whatever the policy says.
BY_NO_FIELD = {
    "ShareMalformed",
    "UnknownContainer",
    "ConflictingRequest",
    "ReservedAnnotation",
    "PrivilegedContainer",
    "PodTooLarge",
}


@pytest.mark.parametrize(("code", "on"), DENIED)
def test_a_denial_has_a_code_a_sentence_a_fix_and_the_place_of_the_field_that_decides(
    code: str, on: dict[str, Any]
) -> None:
    deny = denied(on, policies(team="enabled: true\n" + STRICT))
    assert deny.code == code
    place = "" if code in BY_NO_FIELD else r" \(team\.yaml:([2-9]|1[0-9])\)"
    assert re.search(rf"[^)]{place}\. [A-Z].*\.$", deny.message)
    assert deny.message.isprintable()


@pytest.mark.parametrize(("code", "on"), DENIED)
def test_mode_warn_admits_unchanged_and_says_what_would_be_denied(code: str, on: dict[str, Any]) -> None:
    decision = untouched(on, policies("mode: warn\n" + STRICT))
    assert decision.denied is not None
    assert decision.denied.deny.code == code
    warning, *kept = decision.warnings
    assert all("keeps its limit" in one for one in kept)
    assert warning == f"would be denied with {code}: {decision.denied.deny.message}"
    assert "_default.yaml:1" in decision.reason


@pytest.mark.parametrize(
    "on",
    [
        pod(None, limited(quantity=9)),
        pod(None, limited(resource="gpu-share.dev/gpu", quantity=9)),
        pod("0,2", limited()),
    ],
)
def test_mode_warn_says_who_keeps_a_limit_and_with_it_a_share(on: dict[str, Any]) -> None:
    (_, kept) = untouched(on, policies("mode: warn\nshare: {maximum: '0.1'}")).warnings
    assert kept.startswith('Container "main" keeps its limit gpu-share.dev/')
    assert "gets that share unchecked" in kept


@pytest.mark.parametrize(
    ("count", "told"), [(1, "gets that share unchecked"), (3, "no node serves more than one of it")]
)
def test_mode_warn_says_of_a_size_by_dra_that_one_is_served(count: int, told: str) -> None:
    on = pod(None, limited(resource="gpu-share.dev/share-200m", quantity=count))
    (_, kept) = untouched(on, policies("mode: warn\nshare: {maximum: '0.1'}\nallocation: dra")).warnings
    assert told in kept


@pytest.mark.parametrize("on", [pod("0,2"), pod("0,2", limited(quantity=0)), pod("0,2", limited(resource="cpu"))])
def test_mode_warn_says_nothing_of_limits_where_there_are_none_of_ours(on: dict[str, Any]) -> None:
    assert len(untouched(on, policies("mode: warn")).warnings) == 1


def test_every_code_is_denied_with_somewhere_in_these_tests() -> None:
    assert {code for code, _ in DENIED} | {"SharingDisabled", "PolicyBroken"} == set(typing.get_args(Code))


def test_mode_warn_grants_what_is_allowed() -> None:
    assert vgpus(granted(pod("0.2"), policies("mode: warn"))) == {"main": 2}


def test_shares_can_be_switched_off() -> None:
    by = policies(team="mode: enforce\nenabled: false")
    deny = denied(pod("0.2"), by)
    assert deny.code == "SharingDisabled"
    assert "(team.yaml:2)" in deny.message
    granted(pod("0.2"), by, "other")
    untouched(pod(None), by)


@pytest.mark.parametrize(
    ("namespace", "why"),
    [
        ("kube-system", "the namespace kube-system is exempt (_cluster.yaml: exemptNamespaces)"),
        ("system", "the namespace system is exempt (_cluster.yaml: exemptNamespaces)"),
        (
            "gpu-share",
            "the namespace gpu-share is gpu-share's own, and the API server never asks gpu-share about its pods",
        ),
    ],
)
def test_an_exempt_namespace_is_never_looked_at(namespace: str, why: str) -> None:
    by = policies("enabled: false", "exemptNamespaces: [kube-system, system]")
    decision = untouched(pod("nonsense"), by, namespace)
    assert decision.reason == why
    assert (decision.warnings, decision.denied) == ((), None)
    assert denied(pod("0.2"), by, "kube-public").code == "SharingDisabled"


@pytest.mark.parametrize("namespace", ["kube-system", "gpu-share"])
def test_a_limit_in_an_exempt_namespace_gets_its_share_unchecked_and_the_decision_says_so(namespace: str) -> None:
    (warning,) = untouched(pod(None, limited("main", 20)), namespace=namespace).warnings
    assert warning.startswith('Container "main" keeps its limit gpu-share.dev/vgpu, and gets that share unchecked')


HOSTILE = ["x" * 10_000, "a\nb", "\x00\x1b[31m", "\U0001f600" * 300, 'say "hi"', "\u202e", "a/b~c", "\ud7ff\ue000", " "]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_no_message(name: str) -> None:
    for on in (
        pod("0.2", container(name, env=ALL)),
        pod("0.05", container(name)),
        pod("0.25", container(name)),
        pod("0.2", container(name, securityContext={"privileged": True})),
        pod("0.2", limited(name, 3)),
        pod("0.2", container(name, resources={"limits": {f"nvidia.com/gpu{name}": 1}})),
        pod(None, container(name), annotations={f"container.gpu-share.dev/{name}": name}),
        pod(None, annotations={f"container.gpu-share.dev/{name}": "0.2"}),
        pod("0.2", container(name), annotations={f"framework.gpu-share.dev/{name}x": name}),
        pod("0.2", container(name), annotations={"gpu-share": name}),
        pod("0.2", container(name, env=[{"name": f"CUDA_MPS_{name}", "value": name}])),
        pod("0.2", container(name, resources={"limits": {VGPU: name}})),
        pod("0.2", container(name), runtimeClassName=name),
    ):
        message = denied(on, policies(STRICT + "placement: {runtimeClassName: nvidia}")).message
        assert message.isprintable()
        assert 'say "' not in message  # its quotes are told from those around it


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_no_warning(name: str) -> None:
    strip = policies("environment: {reserved: strip}")
    bad = container(name, env=[{"name": f"CUDA_MPS_{name}", "value": "x"}])
    on = pod("0.25", bad, annotations={"gpu-share.dev/framework": name})
    for warning in granted(on, strip).warnings:
        assert warning.isprintable()
        assert len(warning) < 256


def test_the_framework_can_be_named_for_pod_and_container() -> None:
    named = {"gpu-share.dev/framework": "jax", "framework.gpu-share.dev/b": "cupy", "container.gpu-share.dev/b": "0.3"}
    a, b = mutated(pod("0.2", container("a"), container("b"), annotations=named))["spec"]["containers"]
    assert environment(a) == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.2", "XLA_CLIENT_MEM_FRACTION": ""}
    assert environment(b) == {"CUPY_GPU_MEMORY_LIMIT": "30%"}


def test_with_the_framework_none_nothing_is_added_but_the_users_own_is_judged() -> None:
    none = {"gpu-share.dev/framework": "none"}
    on = pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=["--model=m"]), annotations=none)
    assert only_container(mutated(on))["args"] == ["--model=m"]
    own = pod("0.2", GREEDY, annotations=none)
    assert only_container(mutated(own))["args"] == ["--gpu-memory-utilization=0.2"]


def test_an_unknown_framework_is_warned_about() -> None:
    (warning,) = granted(pod("0.2", annotations={"gpu-share.dev/framework": "caffe"})).warnings
    assert '"caffe"' in warning


def test_detection_can_be_switched_off() -> None:
    off = policies("frameworks: {detect: false}")
    plain = container(image="vllm/vllm-openai:v0.11.0", args=["--model=m"])
    assert only_container(mutated(pod("0.2", plain), off))["args"] == ["--model=m"]
    assert only_container(mutated(pod("0.2", GREEDY), off))["args"] == ["--gpu-memory-utilization=0.2"]
    named = pod("0.2", plain, annotations={"gpu-share.dev/framework": "vllm"})
    assert only_container(mutated(named, off))["args"] == ["--model=m", "--gpu-memory-utilization=0.2"]
