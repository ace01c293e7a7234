"""What git runs of its variables is read as a text, and nothing else that it gets."""

import pytest

from policies.grant import Grant
from tests.policies.pods import container, denied, granted, pod, policies

SLICED = policies("strategy: time-slicing")


@pytest.mark.parametrize(
    "script",
    [
        "export GIT_SHA=$(git rev-parse HEAD); python main.py",
        'GIT_COMMIT=$(git rev-parse HEAD); python main.py --sha="$GIT_COMMIT"',
        'GIT_ROOT=$(git rev-parse --show-toplevel); cd "$GIT_ROOT"; python t.py',
        'GIT_TOKEN="$(cat /s/t)"; git clone "https://oauth2:${GIT_TOKEN}@x/y" /s && python t.py',
        "export GIT_HASH=$(git -C /app rev-parse HEAD 2>/dev/null || echo unknown); exec vllm serve m --port 8000",
    ],
)
def test_a_variable_that_only_has_a_name_like_those_of_git_is_none_that_it_runs(script: str) -> None:
    assert isinstance(granted(pod("0.2", container(command=["bash", "-c", script])), SLICED), Grant)


@pytest.mark.parametrize(
    "name",
    ["GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_CONFIG_VALUE_0", "GIT_ASKPASS", "SSH_ASKPASS", "GH_PAGER"],
)
def test_a_variable_that_git_or_gh_runs_is_read_as_a_text(name: str) -> None:
    script = f'export {name}="vllm serve m $(echo --gpu)-memory-utilization=0.95"; git fetch; python t.py'
    assert denied(pod("0.2", container(command=["bash", "-c", script])), SLICED).code == "MemoryArgumentAboveShare"
