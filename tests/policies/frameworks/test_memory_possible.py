"""What a shell's text may set, as one of several values or as a tool's word: MPS limits it, and nothing else does."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

USE = "--gpu-memory-utilization"
JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"
SLICED = policies("strategy: time-slicing")
WARNING = policies("{strategy: time-slicing, frameworks: {unread: warn}}")
DENYING = policies("frameworks: {onConflict: deny}")


def bash(text: str, *words: str) -> dict[str, Any]:
    return pod("0.2", container(image="vllm/vllm-openai:v0.11.0", command=["bash", "-c", text, *words]))


POSSIBLE = {
    "a time among the words": bash(
        't=$1; shift; exec timeout "$t" "$@"', "x", "3600", "vllm", "serve", "m", USE, "0.2"
    ),
    "an argument of a function": bash(f'f() {{ shift; vllm serve "$1" --port "$2" {USE} "$3"; }}; f x m 8000 0.2'),
    "a variable's argument of a function": bash(
        f'f() {{ shift; {JAX}=$2 python "$1" --steps "$3"; }}; f x a.py 0.2 1000'
    ),
    "an element of an array": bash(f'A=(m 8000 0.2); exec vllm serve "${{A[0]}}" {USE} "${{A[2]}}"'),
    "a value by its key": bash(f'declare -A C=([port]=8000 [util]=0.2); exec vllm serve m {USE} "${{C[util]}}"'),
    "a loop over options": bash(
        f'while [[ $# -gt 0 ]]; do case $1 in --port) P=$2;; --util) U=$2;; esac; shift 2; done; vllm serve {USE} "$U"',
        *("x", "--port", "8000", "--util", "0.2"),
    ),
    "the words behind one that may be gone": bash(f'shift; exec vllm serve m {USE} "$@"', "x", "0.1", "0.9"),
    "a text without its first word": bash(f"shift; U=$*; exec vllm serve m {USE}=$U", "x", "0.1", "0.9"),
    "words behind several that may be nothing": bash(
        f'if x; then A=0.1; B=0.1; C=0.1; fi; set -- ${{A-}} ${{B-}} ${{C-}} 0.9; vllm serve m {USE} "$@"'
    ),
    "a branch that is not taken": bash(f"if [ -d /x ]; then U=0.9; else U=0.2; fi; vllm serve m {USE} $U"),
    "a word of a tool": bash(f"echo 'vllm serve m {USE}=0.9' > /x.sh; sh /x.sh"),
    "a word of a tool behind a wrapper": bash(f"timeout 9 echo 'vllm serve m {USE}=0.9'"),
    "a word for a tool that looks like an assignment": bash(f"echo {JAX}=0.9; python t.py"),
    "a word of a tool that is not listed": bash(f'pkill -f "vllm serve m {USE} 0.9"; vllm serve m {USE}=0.2'),
    "what a tool reads": bash(f"cat > /x.sh <<'E'\nvllm serve m {USE}=0.9\nE\nsh /x.sh"),
    "a word for a function that echoes it": bash(f"f() {{ echo $*; }}\nf {USE}=0.9\nvllm serve m {USE}=0.2"),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_one_of_several_values_is_a_warning_under_mps_and_denied_under_time_slicing(name: str) -> None:
    warnings = granted(POSSIBLE[name]).warnings
    assert any(" may be " in text and text.endswith("; MPS limits it") for text in warnings), warnings
    deny = denied(POSSIBLE[name], SLICED)
    assert deny.code == "MemoryArgumentAboveShare"
    assert 'Container "main" may set ' in deny.message


@pytest.mark.parametrize(("value", "fix"), [("0.9", "Lower it to the share."), ("$X", "Write it out, or as --option=")])
def test_its_denial_says_to_lower_what_is_written_out(value: str, fix: str) -> None:
    on = bash(f"if x; then U={value}; else U=0.2; fi; vllm serve m {USE}=$U")
    on["spec"]["containers"][0]["env"] = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]
    message = denied(on, SLICED).message
    assert f"under time-slicing nothing else limits its memory. {fix}" in message


@pytest.mark.parametrize("name", POSSIBLE)
def test_it_is_a_warning_under_time_slicing_too_where_the_policy_says_so(name: str) -> None:
    warnings = granted(POSSIBLE[name], WARNING).warnings
    assert any(" may be " in text and text.endswith("; nothing else limits its memory") for text in warnings), warnings


@pytest.mark.parametrize(
    "on",
    [
        bash(f"vllm serve m {USE} 0.9"),
        bash("vllm serve m --kv-cache-memory-bytes 70G"),
        pod("0.2", container(image="ghcr.io/nvidia/jax:jax-2025-01-01", command=["sudo", "python3", "t.py"])),
    ],
)
def test_what_is_above_the_share_for_certain_is_denied_there_as_well(on: dict[str, Any]) -> None:
    assert denied(on, WARNING).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("name", ["a time among the words", "an element of an array"])
def test_it_is_denied_under_mps_too_where_the_policy_says_so_of_what_cannot_be_lowered(name: str) -> None:
    assert denied(POSSIBLE[name], DENYING).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize(
    "text",
    [
        f"U=0.9; vllm serve m {USE} $U",
        f'A=(m {USE} 0.9); vllm serve "${{A[@]}}"',
        f"if [ -d /x ]; then vllm serve m {USE} 0.9; fi",
        f"if [ -d /x ]; then export {JAX}=0.9; fi; python x",
        f"echo {USE}=0.9; vllm serve m {USE}=0.9",
        f"python3 - <<E\n{JAX}=0.9\nE",
    ],
)
def test_what_stands_there_for_certain_is_denied_under_mps_too(text: str) -> None:
    assert 'Container "main" sets ' in denied(bash(text)).message


OTHERWISE = {
    "a loop": f"for {JAX} in 0.5 0.9; do python t.py; done",
    "what is read": f"read {JAX} <<< 0.9; export {JAX}; python t.py",
    "a file descriptor": f"exec {{{JAX}}}</dev/null; python t.py",
    "a coprocess": f"coproc {JAX} {{ :; }}; python t.py",
    "what printf writes": f"printf -v {JAX} %s 0.9; python t.py",
}


@pytest.mark.parametrize("text", OTHERWISE.values(), ids=OTHERWISE.keys())
@pytest.mark.parametrize("shell", ["zsh", "bash"])
def test_what_sets_a_variable_by_its_name_alone_is_unread_where_nobody_reads_the_text(shell: str, text: str) -> None:
    command = [shell, "-c", f"IFS=,; {text}" if shell == "bash" else text]
    assert (
        denied(pod("0.2", container(image="nvidia/jax:1", command=command)), SLICED).code == "MemoryArgumentAboveShare"
    )


NOT_SET = {
    "a loop over another one": f"for A in 1 2; do {JAX}=0.1 python t.py; done",
    "a line of its own": f"read A; echo {JAX}; python t.py",
    "a member in JSON": f'python t.py --env \'{{"{JAX}": "0.1"}}\'',
}


@pytest.mark.parametrize("text", NOT_SET.values(), ids=NOT_SET.keys())
def test_what_sets_another_one_in_front_of_it_says_nothing_of_it(text: str) -> None:
    granted(pod("0.2", container(image="nvidia/jax:1", command=["zsh", "-c", text])), SLICED)
