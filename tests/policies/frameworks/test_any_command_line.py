"""Command lines of any words and texts, for any shell: each is decided on."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, pod, policies

IMAGES = st.sampled_from(["python:3", "ghcr.io/nvidia/jax:jax-2025-01-01", "vllm/vllm-openai:v0.9.0"])
STARTERS = st.sampled_from(["sh", "bash", "zsh", "fish", "csh", "busybox sh", "su - app", "sudo -s", "flock /l"])
PIECES = st.sampled_from([
    "\n", " ", ";", "&", "|", "=", "$A", "${A:-", '"$@"', "$(", ")", "`", "'", '"', "\\", "((", "<<E\n", "\nE\n",
    "if ", "then ", "fi", "for v in ", "do ", "done", "f() { ", "}", "{ ", "A=", "A+=", "A+=(", "A[0]", "0.95",
    "((A>0)) ", "[[ -n $A ]] ", "/usr/bin/",
    "sudo", "su - app ", "env -i ", "unset ", "set -e ", "export -n ", "declare +x ", "exec -c ",
    "./t", "python3 t.py", "vllm serve m ", "--gpu-memory-utilization", "per_process_memory_fraction:",
    "XLA_PYTHON_CLIENT_MEM_FRACTION", "PYTORCH_CUDA_ALLOC_CONF=",
])  # fmt: skip
PIPED_INTO_A_SHELL = """curl -LsSf https://astral.sh/uv/install.sh | sh
total=$(nvidia-smi | awk '{ if (($1>1000)) s+=$1 } END { print s }')
echo "total $total MiB"
exec vllm serve m
"""
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@given(image=IMAGES, starter=STARTERS, texts=st.lists(TEXTS, max_size=3), value=st.none() | TEXTS)
@example(image="python:3", starter="zsh", texts=["A=/usr/bin/sudo"], value=None)
@example(image="python:3", starter="sh", texts=["((n>0)) ARGS+=(--x)"], value=None)
@example(image="python:3", starter="bash", texts=["[[ -n $D ]] ARGS+=(--debug)"], value=None)
@example(image="python:3", starter="bash", texts=["((i++)) i+=1"], value=None)
@example(image="python:3", starter="bash", texts=[PIPED_INTO_A_SHELL], value=None)
def test_every_command_line_is_decided_on(
    strategy: str, image: str, starter: str, texts: list[str], value: str | None
) -> None:
    env = [] if value is None else [{"name": "A", "value": value}]
    asking = pod("0.2", container(image=image, command=[*starter.split(), "-c", *texts], env=env))
    assert isinstance(decided(asking, policies(f"strategy: {strategy}")), Denied | Grant)
