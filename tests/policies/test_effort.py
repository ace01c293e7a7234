from typing import Any

import pytest

from policies.denial import DeniedError
from policies.effort import effort_of
from policies.frameworks.allowance import MOST_BEYOND, MOST_STEPS, Allowance, UnreadableError
from policies.pod import Container
from tests.policies.pods import container, denied, granted, pod, policies

WIDE = policies("share: {podMaximum: '8', maximum: '8'}\nhostPaths: [{path: /data}]", "vgpusPerGpu: 60")
WORDS: dict[str, Any] = {"args": ["x"] * 2000}
QUANTITIES: dict[str, Any] = {"resources": {"limits": {f"example.com/a{number}": 1 for number in range(1000)}}}
LONG = "mkdir -p /a && cp b /a; " * 400 + "export A=$B; " * 50


def test_of_several_things_a_pod_has_less_together_than_of_each() -> None:
    granted(pod("0.2", container(**WORDS)), WIDE)
    granted(pod("0.2", container(**QUANTITIES)), WIDE)
    deny = denied(pod("0.2", container(**WORDS, **QUANTITIES)), WIDE)
    assert deny.code == "PodTooLarge"
    assert "together" in deny.message


def test_paths_of_the_node_count_with_them() -> None:
    hosts = [{"name": f"v{number}", "hostPath": {"path": "/data/" + "x/" * 40 + "x"}} for number in range(200)]
    granted(pod("0.2", container(), volumes=hosts), WIDE)
    assert denied(pod("0.2", container(**WORDS), volumes=hosts), WIDE).code == "PodTooLarge"


def test_a_pod_with_long_texts_may_have_as_much_for_each_of_their_pieces() -> None:
    many = Container(name="main", args=["x"] * 2048, env=[])
    assert not effort_of([many]).is_too_much
    assert effort_of([many, Container(name="long", args=["x" * 100_000])]).is_too_much
    assert not effort_of([many, Container(name="long", args=["x" * 300_000])]).is_too_much


def _starts(count: int, **fields: Any) -> dict[str, Any]:
    asked = {f"container.gpu-share.dev/c{number}": "0.01" for number in range(count)}
    return pod(None, *(container(f"c{number}", **fields) for number in range(count)), annotations=asked)


def test_what_is_looked_at_in_many_containers_is_bounded_for_the_whole_pod() -> None:
    rich = {
        "image": "nvidia/jax:1",
        "command": ["sh", "-c", f"trtllm-serve CUPY_GPU_MEMORY_LIMIT=1% $A; {'a;' * 20}"],
        "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "a $A"]}}},
    }
    granted(_starts(10, **rich), WIDE)
    assert "more to look through" in denied(_starts(60, **rich), WIDE).message


def test_containers_beside_a_script_that_is_too_long_to_be_read_are_granted() -> None:
    on = _starts(6, command=["bash", "-c", f"{LONG}; exec vllm serve m --gpu-memory-utilization 0.01"])
    granted(on, WIDE)


def test_what_is_looked_at_leaves_less_for_texts() -> None:
    allowance = Allowance()
    allowance.look(MOST_STEPS - 10)
    allowance.work(10)
    with pytest.raises(UnreadableError):
        allowance.work(1)


def test_a_step_too_many_of_a_text_takes_nothing_from_what_is_looked_at_behind_it() -> None:
    allowance = Allowance()
    with pytest.raises(UnreadableError):
        allowance.work(10 * MOST_STEPS)
    assert allowance.is_spent
    allowance.look(MOST_BEYOND - 1)
    with pytest.raises(DeniedError, match="more to look through"):
        allowance.look(1)


def test_references_take_steps_from_texts_and_deny_no_pod_for_that() -> None:
    allowance = Allowance()
    allowance.work(MOST_STEPS - 1000)
    allowance.read(1500)
    assert allowance.is_spent
    allowance.look(MOST_BEYOND - 1)
