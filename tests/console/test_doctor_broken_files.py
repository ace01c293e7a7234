"""A policy file that is broken hides what it says: by that no check is in order, nor finds anything."""

from collections.abc import Callable

import msgspec
import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, findings
from policies.errors import Problem
from policies.policy import broken_policy
from tests.console.installations import dra, installation, namespace, nodes, policies, seen
from tests.console.objects import gpu, state
from tests.console.test_doctor_checks import FINE, WRONG
from tests.console.wrong.of_workloads import sliced

OF_FILES = "policies-valid"
LABELLED = {"gpu-share.dev/mode": "warn"}
SECURED = {"pod-security.kubernetes.io/enforce": "restricted"}
LEFT = {"gpu-share.dev/vgpu": "20", "nvidia.com/gpu": "1"}
MADE: list[Callable[[], Installation]] = [
    *(made for *_, made in WRONG),
    installation,
    lambda: installation(**dra()),
    lambda: installation(**policies(x="allocation: dra\n")),  # without its policies of admission
    lambda: installation(
        seen(**nodes(state(gpu(), gpu(index=1), on="gpu-0"), allocatable=LEFT)),
        **policies("nodes: [{node: gpu-0, offer: none}]\n"),
    ),
    lambda: installation(**policies(a="mode: warn\n"), **namespace("a", labels=LABELLED)),
    lambda: installation(**policies(a="hostPaths: [{path: /data}]\n"), **namespace("a", host_paths="/data")),
    lambda: installation(**policies(a="mps: {attach: node}\n"), **namespace("a", labels=SECURED)),
    lambda: sliced("--gpu-memory-utilization=0.2"),
]


def without_cluster_file(on: Installation) -> Installation:
    return msgspec.structs.replace(on, policies=None, policy_problems=("_cluster.yaml:1: vgpusPerGpu: no number",))


def without_file_of(name: str, on: Installation) -> Installation:
    """Break the file of a namespace."""
    assert on.policies is not None
    problem = Problem(f"{name}.yaml", 3, "share.maximum", "no share")
    namespaces = {**on.policies.namespaces, name: broken_policy(name, problem)}
    return msgspec.structs.replace(
        on,
        policies=msgspec.structs.replace(on.policies, namespaces=namespaces),
        policy_problems=(*(on.policy_problems or ()), str(problem)),
    )


def broken(on: Installation) -> list[Installation]:
    """Break `_cluster.yaml`, and each file that a namespace has or could have."""
    if on.policies is None:
        return []
    names = {*on.policies.namespaces, *(on.namespaces or {})}
    return [without_cluster_file(on), *(without_file_of(name, on) for name in sorted(names))]


def turned(whole: Installation, now: Installation) -> list[tuple[str, str, str]]:
    """List the checks that find anything only now, or nothing any more."""
    before, after = findings(whole, AFTER), findings(now, AFTER)
    both = ((one.check, one.status, other.status) for one, other in zip(before, after, strict=True))
    known = (
        (check, was, is_now) for check, was, is_now in both if "unknown" not in (was, is_now) and check != OF_FILES
    )
    return [(check, was, is_now) for check, was, is_now in known if (was in FINE) != (is_now in FINE)]


@pytest.mark.parametrize("number", range(len(MADE)))
def test_by_a_broken_file_no_check_turns_from_wrong_to_right_or_back(number: int) -> None:
    whole = MADE[number]()
    assert {change for now in broken(whole) for change in turned(whole, now)} == set()


def test_what_does_not_hang_on_a_broken_file_is_judged_as_before() -> None:
    for now in broken(installation()):
        found = {one.check: one for one in findings(now, AFTER)}
        assert found[OF_FILES].status == "failure"
        assert {found[one].status for one in ("webhook-runs", "nodes-ready", "gpus-healthy", "pods-run")} <= {*FINE}
    one_namespace = without_file_of("x", installation())
    unknown = {one.check for one in findings(one_namespace, AFTER) if one.status == "unknown"}
    assert not unknown & {"exempt-namespaces", "resource-names", "numbers-agree", "within-share", "admission-shipped"}


def test_of_a_broken_file_it_is_said_which_policy_a_webhook_keeps() -> None:
    made = installation(**policies(a="share: {maximum: 0.5}\n"), **namespace("a", labels=LABELLED | SECURED))
    found = {one.check: one for one in findings(made, AFTER)}
    for check in ("warn-mode", "host-paths", "pod-security", "feature-gates", "admission-policies"):
        (told,) = found[check].found
        assert (found[check].status, "a.yaml:1" in told) == ("unknown", True), check
        assert "a webhook keeps the policy that it had, and one that has started since denies" in told
