import re
from typing import Any

import pytest

from policies.grant import Untouched
from policies.policy_set import PolicySet
from tests.policies.pods import (
    TIMESLICED,
    container,
    decided,
    denied,
    granted,
    limited,
    mutated,
    pod,
    policies,
    vgpus,
)

HALF = policies("share:\n  minimum: '0.1'\n  maximum: '0.5'\n  podMaximum: '0.6'\n")
TWO_GPUS = policies("strategy: time-slicing\nshare: {maximum: '2', podMaximum: '2'}")
EXACT = policies("share:\n  rounding: exact\n")
THIRDS = policies("share: {rounding: exact, maximum: '4'}", "vgpusPerGpu: 3")
STRIP = policies("environment: {reserved: strip}")


@pytest.mark.parametrize("share", ["0.1", "10%", "0.2", "0.5", "50%"])
def test_the_bounds_themselves_are_allowed(share: str) -> None:
    granted(pod(share), HALF)


@pytest.mark.parametrize(
    ("on", "code", "field"),
    [
        (pod("0.099"), "ShareBelowMinimum", "team.yaml:2"),
        (pod("0.501"), "ShareAboveMaximum", "team.yaml:3"),
        (pod("1"), "ShareAboveMaximum", "team.yaml:3"),
        (pod("16"), "ShareAboveMaximum", "team.yaml:3"),
        (pod(None, limited(quantity=6)), "ShareAboveMaximum", "team.yaml:3"),
        (pod(None, limited(quantity="1k")), "ShareAboveMaximum", "team.yaml:3"),
        (pod(None, limited("a", 3), limited("b", "4")), "PodShareAboveMaximum", "team.yaml:4"),
    ],
)
def test_a_share_outside_the_bounds_is_denied_where_the_bound_is_written(
    on: dict[str, Any], code: str, field: str
) -> None:
    by = policies(team="share:\n  minimum: '0.1'\n  maximum: '0.5'\n  podMaximum: '0.6'\n")
    deny = denied(on, by)
    assert deny.code == code
    assert f"({field})" in deny.message


@pytest.mark.parametrize(("share", "count"), [("1", 10), ("2", 20), ("0.95", 10), ("0.901", 10)])
def test_whole_gpus(share: str, count: int) -> None:
    assert vgpus(granted(pod(share), TWO_GPUS)) == {"main": count}


@pytest.mark.parametrize("quantity", [11, "15", "19000m"])
def test_more_than_one_gpu_is_whole_gpus(quantity: Any) -> None:
    deny = denied(pod(None, limited(quantity=quantity, resource=TIMESLICED)), TWO_GPUS)
    assert deny.code == "ShareMalformed"
    assert "whole GPUs" in deny.message


@pytest.mark.parametrize(
    ("share", "by", "fix"),
    [
        ("0.25", EXACT, 'Ask for "0.2" or "0.3".'),
        ("0.05", EXACT, 'Ask for "0.1".'),
        ("0.999", EXACT, 'Ask for "0.9" or "1".'),
        ("0.5", THIRDS, "Ask for 2 vGPUs by a limit."),
        ("0.7", THIRDS, 'Ask for "1".'),
    ],
)
def test_a_share_that_is_not_exact_is_denied_with_the_nearest_that_are(share: str, by: PolicySet, fix: str) -> None:
    deny = denied(pod(share), by)
    assert deny.code == "NotWholeVgpus"
    assert fix in deny.message
    assert "_default.yaml:" in deny.message


@pytest.mark.parametrize(("share", "bounds"), [("0.55", "maximum: '0.55'"), ("0.15", "minimum: '0.15'")])
def test_a_share_that_is_proposed_would_be_granted(share: str, bounds: str) -> None:
    by = policies(f"share: {{rounding: exact, {bounds}}}")
    message = denied(pod(share), by).message
    for proposed in re.findall(r"0\.[0-9]+", message.partition("Ask for")[2]):
        granted(pod(proposed), by)


@pytest.mark.parametrize("share", ["0.1", "0.3", "1", "30%"])
def test_an_exact_share_passes_where_rounding_is_forbidden(share: str) -> None:
    assert granted(pod(share), EXACT).warnings == ()


def test_a_rounded_share_is_warned_about_with_both_numbers() -> None:
    (warning,) = granted(pod("0.25")).warnings
    assert "0.25" in warning
    assert "2.5 of 10" in warning
    assert "rounded up to 3" in warning


SETUP, PROXY = container("setup"), container("proxy", restartPolicy="Always")


@pytest.mark.parametrize(
    ("first", "setup", "proxy", "main", "fits"),
    [
        ([SETUP], "0.9", None, "0.9", True),  # one after the other
        ([SETUP, PROXY], "0.9", "0.2", "0.8", True),  # the sidecar starts after the init container
        ([PROXY, SETUP], "0.9", "0.2", "0.5", False),  # the sidecar runs beside the init container
        ([PROXY], None, "0.5", "0.6", False),  # and beside the app
        ([PROXY], None, "0.5", "0.5", True),
        ([PROXY, SETUP], "0.5", "0.5", "0.5", True),
    ],
)
def test_a_pod_is_added_up_as_the_scheduler_does(
    first: list[dict[str, Any]], setup: str | None, proxy: str | None, main: str, *, fits: bool
) -> None:
    named = {"container.gpu-share.dev/setup": setup, "container.gpu-share.dev/proxy": proxy}
    on = pod(main, annotations={key: share for key, share in named.items() if share}, initContainers=first)
    if fits:
        granted(on)
    else:
        assert denied(on).code == "PodShareAboveMaximum"


def test_the_sum_is_said_with_its_limit() -> None:
    deny = denied(pod("0.6", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.5"}))
    assert deny.code == "PodShareAboveMaximum"
    assert "1.1 of a GPU" in deny.message
    assert "at most 1 per pod" in deny.message


def test_the_sum_that_is_said_is_above_its_limit_in_thirds_too() -> None:
    by = policies(cluster="vgpusPerGpu: 3")
    deny = denied(pod(None, limited("a", 1), container("b"), annotations={"container.gpu-share.dev/b": "0.667"}), by)
    assert deny.code == "PodShareAboveMaximum"
    assert "ask for 1 of a GPU" not in deny.message


PLACED = policies(
    "placement:\n  nodeSelector: {gpu: shared}\n  runtimeClassName: nvidia\n  schedulerName: packer\n"
    "  tolerations:\n  - {key: gpu, operator: Exists, effect: NoSchedule}\n"
)


@pytest.mark.parametrize(
    ("spec", "line", "words"),
    [
        ({"nodeSelector": {"gpu": "whole"}}, 2, "nodeSelector gpu"),
        ({"nodeSelector": {"gpu": ""}}, 2, "nodeSelector gpu"),
        ({"runtimeClassName": "kata"}, 3, "runtimeClassName"),
        ({"schedulerName": "other"}, 4, "schedulerName"),
    ],
)
def test_a_pod_that_says_otherwise_than_the_placement_is_denied(spec: dict[str, Any], line: int, words: str) -> None:
    deny = denied(pod("0.2", **spec), PLACED)
    assert deny.code == "ConflictingRequest"
    assert f"_default.yaml:{line}" in deny.message
    assert words in deny.message


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {"gpu": "shared", "zone": "a"}, "runtimeClassName": "nvidia", "schedulerName": "packer"},
        {"schedulerName": "default-scheduler"},
        {"nodeSelector": None, "tolerations": None, "schedulerName": None},
        {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "other", "operator": "Exists"}]},
    ],
)
def test_the_placement_is_added_to_what_the_pod_says(spec: dict[str, Any]) -> None:
    placed = mutated(pod("0.2", **spec), PLACED)["spec"]
    assert placed["nodeSelector"] == {**(spec.get("nodeSelector") or {}), "gpu": "shared"}
    assert (placed["runtimeClassName"], placed["schedulerName"]) == ("nvidia", "packer")
    tolerated = [one for one in placed["tolerations"] if one.get("key") == "gpu"]
    assert tolerated == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_a_mirror_pod_is_left_alone() -> None:
    decision = decided(pod("0.2", annotations={"kubernetes.io/config.mirror": "5f3c"}))
    assert decision == Untouched(
        "it says that it mirrors a static pod, and the API server denies that to everybody but kubelets"
    )
