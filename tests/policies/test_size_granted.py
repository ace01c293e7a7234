"""What comes with a share does not count: a pod at a limit is granted again as it was."""

from collections.abc import Callable
from typing import Any

import pytest

from policies.size import MOST_OTHERS, MOST_SHARES, MOST_VARIABLES, MOST_WORDS
from tests.policies.pods import container, mutated, pod, policies
from tests.policies.test_size import COUNTED, WIDE


@pytest.mark.parametrize(("what", "most", "of"), COUNTED)
def test_one_that_has_so_many_is_granted_again_as_it_was(
    what: str, most: int, of: Callable[[int], dict[str, Any]]
) -> None:
    on = mutated(of(most), WIDE)
    assert mutated(on, WIDE) == on, what


@pytest.mark.parametrize("fields", [{"args": ["x"] * (MOST_WORDS - 2)}, {"env": [{"name": "A"}] * MOST_VARIABLES}])
def test_so_is_one_whose_words_and_variables_become_more(fields: dict[str, Any]) -> None:
    wide = policies("placement: {tolerations: [{key: a}]}\nshare: {maximum: '1'}")
    on = pod(
        "0.2",
        container(image="vllm/vllm-openai:v0.11.0", command=["vllm", "serve"], **fields),
        container("b", image="nvcr.io/nvidia/jax:25.10-py3"),
        {"name": "c"},
        tolerations=[{"key": "b"}] * MOST_OTHERS,
    )
    made = mutated(on, wide)
    assert mutated(made, wide) == made


def test_so_is_one_whose_containers_all_get_as_many_constants_as_an_entry_may_have() -> None:
    constants = ", ".join(f"{{variable: V{number}, value: '1'}}" for number in range(8))
    told = "memory: {exclusive: true, spellings: [{variable: A}, {variable: B}, {variable: C}, {variable: D}]}"
    wide = policies(
        "share: {podMaximum: '16'}", f"frameworks: [{{name: x, source: s, {told}, constants: [{constants}]}}]"
    )
    names = [f"c{number}" for number in range(MOST_SHARES)]
    shares = {f"container.gpu-share.dev/{name}": "0.1" for name in names}
    full = container(names[0], env=[{"name": f"E{number}"} for number in range(MOST_VARIABLES)])
    on = pod(None, full, *map(container, names[1:]), annotations={**shares, "gpu-share.dev/framework": "x"})
    made = mutated(on, wide)
    assert len(made["spec"]["containers"][1]["env"]) > len(constants.split("}, {")) + 3
    assert mutated(made, wide) == made
