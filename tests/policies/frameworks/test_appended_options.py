"""An option that is written `--name="$REF"` is no program and none of `exec`'s, in whatever list of words it stands."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, granted, pod, policies

SLICED = policies("strategy: time-slicing")
ENV: list[dict[str, Any]] = [
    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
    {"name": "NAME", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
]
OPTIONS = (
    '--served-model-name="$HOSTNAME"',
    '--api-key="$KEY"',
    '--tp="$(nvidia-smi -L | wc -l)"',
    '--url="http://$NAME:80/v1"',
    '-x="$NAME"',
)
LISTS = (
    'CMD=(vllm serve m)\nCMD+=({option})\n{start}"${{CMD[@]}}"',
    'set -- vllm serve m\nif [ "$A" ]; then set -- "$@" {option}; fi\n{start}"$@"',
    'run() {{ {start}"$@" {option}; }}\nrun vllm serve m',
    'CMD=(python app.py)\nCMD+=(--verbose {option})\n{start}"${{CMD[@]}}"',
)
STARTS = ("", "exec ", "exec nice ", "env A=b ", "exec env A=b ", "timeout 9 ")
FEEDING = (
    "python3 - <<'PY'\nfrom huggingface_hub import snapshot_download\nsnapshot_download('m')\nPY\n",
    'while read -r m; do huggingface-cli download "$m"; done < /cfg/models\n',
    'echo "$KEY" | docker login --password-stdin registry.example\n',
    "curl -fs https://example.com/models.tgz | tar -xz\n",
)
REACHING = (
    'CMD=(vllm serve m)\nCMD+=("--$NAME=1")\nexec "${CMD[@]}"',
    'CMD=(vllm serve m)\nCMD+=("$NAME")\nexec "${CMD[@]}"',
    'CMD=(vllm serve m)\nCMD+=(--x=$NAME)\nexec "${CMD[@]}"',
    'CMD=(vllm serve m)\nCMD+=("-app=$NAME" vllm)\nexec "${CMD[@]}"',
    'echo "vllm serve m $KEY" | "$NAME"',
    'true\n--x=1() { vllm serve m --gpu-memory-utilization="${1:-0.1}"; }\n"--x=$NAME" 0.95',
    'A=0.1\n--x=1() { A=${1:-0.1}; }\n"--x=$NAME" 0.95\nvllm serve m --gpu-memory-utilization=$A',
    'command_not_found_handle() { vllm serve m --gpu-memory-utilization="$2"; }\n"--x=$NAME" 0.95',
    'true; "--x=$NAME" vllm serve m --gpu-memory-utilization=0.95',
    'true; "--x=$NAME" eval "vllm serve m $NAME"',
    'env --unset="$NAME" vllm serve m',
    'A=(bash -c \'exec vllm serve m $@\' start)\nA+=(--x="$NAME")\nexec "${A[@]}"',
    'A=(nice sh -c \'eval "vllm serve m $1"\' start)\nA+=(--x="$NAME")\n"${A[@]}"',
    'A=(env)\nA+=(--split-string="$NAME")\n"${A[@]}"',
    'A=(nice env)\nA+=(--s="$NAME")\nexec "${A[@]}"',
    'A=(su root)\nA+=(--command="$NAME")\nexec "${A[@]}"',
    'A=(xargs)\nA+=(-e="$NAME" vllm serve m)\necho "vllm serve m $NAME" | "${A[@]}"',
    'f() { A+=(--split-string="$NAME"); }\nA=(env)\nf\nexec "${A[@]}"',
    'env -S "--ignore-signal=$NAME" vllm serve m',
    'env --split-string="--ignore-signal=$NAME" vllm serve m',
)


def started(text: str, image: str) -> Any:
    return pod("0.2", container(image=image, command=["bash", "-c", text], env=ENV))


@pytest.mark.parametrize("image", ["vllm/vllm-openai:v0.11.0", "registry.example/app:1"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("words", LISTS)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_is_added_to_the_words_of_a_program_is_granted(
    option: str, words: str, start: str, image: str
) -> None:
    granted(started(words.format(option=option, start=start), image), SLICED)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("feeding", FEEDING)
def test_it_is_no_shell_that_runs_what_another_command_writes(feeding: str, start: str) -> None:
    text = feeding + LISTS[0].format(option=" ".join(OPTIONS), start=start)
    granted(started(text, "vllm/vllm-openai:v0.11.0"), SLICED)


@pytest.mark.parametrize("text", REACHING)
def test_what_may_be_another_option_or_program_is_denied(text: str) -> None:
    decision = decided(started(text, "vllm/vllm-openai:v0.11.0"), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"
