"""More than one GPU in one container: whole ones or in turns, and never through MPS."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, limited, pod, policies, vgpus

SEVERAL = "share: {maximum: '4', podMaximum: '4', whole: %s}"
PART_BESIDE = pod("2", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.2"})


@pytest.mark.parametrize(
    ("on", "whole", "fix"),
    [
        (pod("2"), "vgpus", 'Ask for "1" or less, or have the policy say share: {whole: gpus}.'),
        (pod(None, limited(quantity=11)), "vgpus", "Ask for 10 vGPUs or less, or have the policy say"),
        (pod(None, limited(quantity="20")), "vgpus", "Ask for 10 vGPUs or less, or have the policy say"),
        (pod("2", limited(quantity=20)), "gpus", "Ask for whole GPUs in all of the pod, by annotation."),
        (PART_BESIDE, "gpus", "Ask for whole GPUs in all of the pod, by annotation."),
    ],
)
@pytest.mark.parametrize("group", ["containers", "initContainers"])
def test_a_container_gets_one_gpu_under_mps_for_a_process_reaches_one_daemon(
    on: dict[str, Any], whole: str, fix: str, group: str
) -> None:
    by = policies(SEVERAL % whole)
    if group == "initContainers":
        on = {**on, "spec": {**on["spec"], "initContainers": [limited("first", 20)]}}
    deny = denied(on, by)
    assert deny.code == "ShareAboveMaximum"
    assert "a process reaches one GPU through MPS, not several (_default.yaml:1)" in deny.message
    if group == "containers":
        assert fix in deny.message


def test_several_gpus_are_whole_gpus_or_taken_in_turns_and_a_pod_may_have_one_in_each_container() -> None:
    gpus = granted(pod("2"), policies(SEVERAL % "gpus"))
    assert (gpus.strategy, vgpus(gpus)) == ("whole", {"main": 2})
    named = {"container.gpu-share.dev/a": "1", "container.gpu-share.dev/b": "1"}
    assert vgpus(
        granted(pod(None, container("a"), container("b"), annotations=named), policies(SEVERAL % "vgpus"))
    ) == {
        "a": 10,
        "b": 10,
    }
