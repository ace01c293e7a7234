"""What comes with a share does not count: a pod at a limit is granted again as it was."""

from collections.abc import Callable
from typing import Any

import pytest

from policies.size import MOST_OTHERS, MOST_VARIABLES, MOST_WORDS
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
