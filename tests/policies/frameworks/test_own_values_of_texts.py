"""A variable that a text sets itself, and a word that a function is given, have the values that stand in the text."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

U = "--gpu-memory-utilization"
JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"
SLICED = policies("strategy: time-slicing")
SERVE = f"vllm serve m {U} $F"
WITHIN = (
    f". /opt/venv/bin/activate; F=0.2; {SERVE}",
    f"source /x\nexport F=0.2\nexec vllm serve m {U}=$F --port 8000",
    f"trap 'kill 0' EXIT; F=0.2; {SERVE}",
    f"if [ $N -gt 1 ]; then F=0.1; else F=0.2; fi; {SERVE}",
    f'if [ -z "$F" ]; then F=0.2; fi; vllm serve m {U} "$F"',
    f"case $MODE in a) F=0.1;; *) F=0.2;; esac; {SERVE}",
    f"F=${{F:-0.2}}; {SERVE}",
    f": ${{F:=0.2}}; {SERVE}",
    f"vllm serve m {U} ${{F:-0.2}} --n 1",
    f"cd /app && F=0.2 && {SERVE}",
    f"export F=0.2; bash -c '{SERVE}'",
    f"for f in 0.1 0.2; do vllm bench {U} $f; done",
    f"while [ $# -gt 0 ]; do case $1 in -f) F=$2; shift 2;; esac; done; vllm serve m {U} ${{F:-0.2}}",
    f'run() {{ vllm serve "$1" --port "$2" {U} "$3"; }}; run m 8000 0.2; run n 8001 0.1',
    f'set -- m 8000 0.2; vllm serve "$1" --port "$2" {U} "$3"',
    f"PY=$(which python3); exec $PY -m vllm.entrypoints.openai.api_server --model m {U} 0.2",
    f"start() {{ local f=$2; vllm serve $1 {U} $f; }}; start m 0.2",
    f"[ -z $BIG ] && F=0.1; export {JAX}=${{F:-0.2}}; python t.py",
    f'train() {{ {JAX}="$1" python t.py; }}; train 0.1; train 0.2',
    f"declare -i n=0\nuntil vllm serve m {U} 0.2; do n+=1; sleep 1; done",
    f"P=8000; for m in a b; do vllm serve $m {U} 0.1 --port $P & ((P+=1)); let n+=1; done; wait",
    f'set -euo pipefail; exec vllm serve m {U} "${{1:-0.1}}"',
    f'declare -A N; for g in a b; do N["$g"]=$((${{N["$g"]:-0}} + 1)); N["of $g"]=$g; done; vllm serve m {U} 0.2',
    f'V=$(x --version); echo "vllm version=$V"; [ $V = 1 ] || A=-x; eval "exec vllm serve m {U} 0.2 $A -tp $((1 + 1))"',
    f'A=(m --port 8000); [ -z $L ] || A+=(--enable-lora); vllm serve "${{A[@]}}" {U} 0.2',
)
ABOVE = (
    f"if [ $N -gt 1 ]; then F=0.1; else F=0.9; fi; {SERVE}",
    f"[ -z $BIG ] && F=0.1; vllm serve m {U} ${{F:-0.9}}",
    f"[ -z $BIG ] && F=x; vllm serve m $F{U} 0.9",
    f"[ -z $BIG ] && F=0.1; vllm serve m {U} $F 0.9",
    f'run() {{ vllm serve "$1" {U} "$2"; }}; run m 0.9',
    f'run() {{ shift; vllm serve m {U} "$2"; }}; run m 0.1 0.9',
    f'run() {{ vllm serve m {U} "$2"; }}; A="m 0.9"; run $A',
    f'run() {{ vllm serve m {U} "$2"; }}; run ${{A:+x}} 0.1 0.9',
    f'run() {{ vllm serve m {U} "$1"; }}; run $LABEL 0.9',
    f'run() {{ run2 "$2" "$1"; }}; run2() {{ vllm serve m {U} "$1"; }}; run 0.1 0.9',
    f'set -- 0.9; set -- 0.1 "$@"; vllm serve m {U} "$2"',
    f'if x; then O=-e; else O=a; fi; set $O 0.9 0.1; vllm serve m {U} "$1"',
    f"bash -s -- 0.9 <<'E'\nvllm serve m {U} $1\nE",
    f"export F=0.9; bash -c '{SERVE}'",
)
NOT_THEIRS = (
    SERVE,
    f"(F=0.1 true); {SERVE}",
    f"F=0.1 true; {SERVE}",
    f"F=$(cat /x); {SERVE}",
    f"declare -i F=1; vllm serve m {U} 0.$F",
    f"F=1; declare -i n; n='F=95'; vllm serve m {U} 0.$F",
    f"F=1; ((F+=94)); vllm serve m {U} 0.$F",
    f"F=1; let F+=94; vllm serve m {U} 0.$F",
    f"false && A_SERVICE_PORT=0.1; vllm serve m {U} 0.$A_SERVICE_PORT",
    f"false && PYTHONUNBUFFERED=0.1; vllm serve m {U} $PYTHONUNBUFFERED",
    f"[ -z $BIG ] && F=0.1; export {JAX}=$F; python t.py",
    f'train() {{ {JAX}="$1" python t.py; }}; train 0.1; train',
    f'train() {{ {JAX}="$1" python t.py; }}; trap train EXIT; train 0.1',
    f"export F=0.1; zsh -c '{SERVE}'",
)


def bash(text: str, share: str = "0.2", **fields: Any) -> dict[str, Any]:
    return pod(share, container(command=["bash", "-c", text], **fields))


@pytest.mark.parametrize("text", WITHIN)
def test_values_within_the_share_are_granted_without_a_word(text: str) -> None:
    more = bash(text, "0.3")  # of which something is left to the framework
    assert granted(bash(text), SLICED).warnings == granted(more).warnings == ()


@pytest.mark.parametrize("text", [*ABOVE, *NOT_THEIRS])
def test_a_value_above_it_and_one_that_is_not_in_the_text_are_denied_under_time_slicing(text: str) -> None:
    label = {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}
    assert denied(bash(text, env=[label]), SLICED).code == "MemoryArgumentAboveShare"


def test_a_variable_of_the_pod_is_not_the_texts_own() -> None:
    of_a_map = {"name": "F", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    assert denied(bash(f"F=${{F:-0.2}}; {SERVE}", env=[of_a_map]), SLICED).code == "MemoryArgumentAboveShare"
    above = denied(bash(f"F=${{F:-0.2}}; {SERVE}", env=[{"name": "F", "value": "0.9"}]), SLICED)
    assert above.code == "MemoryArgumentAboveShare"
    granted(bash(f"F=${{F:-0.9}}; {SERVE}", env=[{"name": "F", "value": "0.1"}]), SLICED)


def test_the_denial_of_a_variable_that_may_be_empty_says_what_to_write() -> None:
    deny = denied(bash(f"[ -z $BIG ] && F=0.1; export {JAX}=$F; python t.py"), SLICED)
    assert f"may set {JAX} to nothing, as far as the text says" in deny.message
    assert "Give what it is set to a default, ${NAME:-0.1}" in deny.message
