"""Pods with much of several kinds at the same time, each of which stays within its own bound."""

from collections.abc import Iterator
from typing import Any

from policies.size import MOST_QUANTITIES, MOST_SHARES, MOST_WORDS
from tests.bench.worst_texts import Worst, env, filled
from tests.policies.pods import container, pod

_SM = "SM_VLLM_GPU_MEMORY_UTILIZATION"  # as a server makes options of its variables
_GROWING = "A+=$A;C='--gpu sh'; env A=$C -c 'vllm serve m ${A}-x=5'\n{a,b} <<E\nE\n{a,b} $A=$A=- $A \n"
_LIST = "PYTORCH_CUDA_ALLOC_CONF=a:1,per_process_memory_fraction:0.9"
_LINES = (
    "case $A in a) b;; *) c;;esac;",
    "A=$(echo $B);xargs ",
    "A=${1:-b};B=$A;",
    "device-mem=0.1 [[ $A = b ]] && <<E\nE\n$(basename $A) ",
)


def together(size: int) -> Iterator[Worst]:
    """Yield pods of about *size* bytes, the dearest of those that a search has put together."""
    for count in (8, 16, 32, MOST_SHARES):
        for name, fields in _starts(min(size, 102_000) // count).items():
            yield f"{count} times {name}", _alike(count, fields)
    for line in _LINES:
        text = f"trtllm-serve {_SM}=0.1 {filled(_GROWING + line, min(size, 8400))}"
        started = container(command=["tini", "--", "sh", "-c", text, "$A"], env=env(1, "-gp=0"))
        yield f"a text that grows and {line[:20]!a}", pod("0.2", started)
        yield f"times {line[:20]!a}", _alike(3, {"command": ["bash", "-c", filled(line, min(size, 27_000) // 3)]})
    yield from _things(size)
    yield from _in_variables(min(size, 97_000))
    for unit in ("-g ", '"\\"', "x${A} "):
        words = f"{_LIST} {filled(unit, min(size, 150_000))}"
        yield f"words of env -S, {unit!a}", pod("0.2", container(command=["env", "-S", words], env=env(1, "1")))
    long = env(1, "a" * (size // 2))
    yield (
        "env -S of a long value",
        pod("0.2", container(command=["env", "-S", filled("${A}", min(size // 2, 8000))], env=long)),
    )


def _starts(size: int) -> dict[str, dict[str, Any]]:
    """Return what containers of *size* bytes are started with."""
    referring = {"args": ["$(A)"] * 8, "env": env(1, "x" * 100)}
    hook = {"postStart": {"exec": {"command": ["sh", "-c", f"a;{_SM}=0.1 a $A;"]}}}
    programs = "trtllm-serve -x bash -c 'a';tritonserver f $A;python -m vllm.entrypoints.api_server "
    image = filled("team", 420)
    return {
        "all in one": {
            "image": "nvidia/jax:1",
            "command": ["dash", "-c", f"<<'E'\na\nE\n{programs}{_SM}=0.1 for A;do {filled('-x a;', size - 700)}"],
            "lifecycle": hook,
            **referring,
        },
        "sudo": {"image": f"{image}7", "command": ["sudo", "sh", "-c", f"eval a;{_SM}=0.1 {filled('a;', size - 700)}"]},
        "variables of a server": {
            "image": "vllm/vllm-openai:v1",
            "command": ["bash", "-c", f"{programs}{_SM}=0.1 $A", "a"],
            "env": env(max(1, size // 80), "eval $A", _SM),
        },
        "programs for no shell": {"command": ["fish", "-c", f"{programs}{filled('$(a) unset ', size - 400)}"]},
    }


def _alike(count: int, fields: dict[str, Any]) -> dict[str, Any]:
    several = [container(f"c{number}", **fields) for number in range(count)]
    image = str(fields.get("image", ""))
    if image.startswith("team"):  # of which none was seen before
        several = [one | {"image": f"{image}{number}"} for number, one in enumerate(several)]
    return pod(None, *several, annotations={f"container.gpu-share.dev/c{n}": "0.01" for n in range(count)})


def _things(size: int) -> Iterator[Worst]:
    """Yield pods of which each part of what is no text is at its limit, or half of it."""
    path = f"/data/{'x/' * (size // 255 // 4)}x"
    hosts = [{"name": f"v{number}", "hostPath": {"path": path[:400]}} for number in range(255)]
    mounts = [{"name": f"v{number}", "mountPath": "/a/./b", "readOnly": True} for number in range(255)]
    amounts = {f"nvidia.com/gpu{number}": "0.0m" for number in range(MOST_QUANTITIES)}
    for share in (1, 2, 3):
        few = dict([*amounts.items()][: MOST_QUANTITIES // share])
        words = ["env", "-u"] * (MOST_WORDS // 2 // share)
        of_text = filled("A+=$A;", 6000)
        on = container(command=words, resources={"limits": few}, volumeMounts=mounts[: 255 // share])
        yield f"1 of {share} of each thing", pod("0.2", on, volumes=hosts[: 255 // share])
        text = container(command=["bash", "-c", of_text], resources={"limits": few})
        yield f"1 of {share} of quantities and a text", pod("0.2", text, volumes=hosts[: 255 // share])


def _in_variables(size: int) -> Iterator[Worst]:
    """Yield pods whose variables hold command lines, and what `env -S` splits."""
    for unit in ("- ", "--d --g ", "A=1 "):
        for words in (["env", "-S", "$(A)"], ["tini", "--", "sudo", "env", "-S", "$(A)"], ["sh", "-c", "eval $A"]):
            value = f"{_LIST} {filled(unit, size)}"
            yield f"{words[-2]} of {unit!a}", pod("0.2", container(command=words, env=env(1, value)))
        few = {"command": ["bash", "-c", "eval $A; $A"], "env": env(1, f"{_LIST} {_LIST} {filled(unit, size // 4)}")}
        yield f"4 times eval of {unit!a}", _alike(4, few)
        for count in (8, 20):
            split = {"command": ["env", "-S", "$(A)"], "env": env(1, f"{_LIST} {filled(unit, size // count)}")}
            yield f"{count} times env -S of {unit!a}", _alike(count, split)
    for count in (8, 60, 126):
        value = f"{filled('--mem-x=1 ', size // count)} --gpu-memory-utilization=0.95"
        yield f"lines in {count} variables", pod("0.2", container(command=["x"], env=env(count, value)))
    yield "8 times lines", _alike(8, {"command": ["x", "$(A)"], "env": env(1, f"{filled('--c ', size // 8)} {_LIST}")})
