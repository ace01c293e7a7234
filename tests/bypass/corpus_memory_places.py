"""Settings of variables and options in unusual places: in lists, in JSON and YAML, behind an option, in a sentence."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONF, CONFIG_MAP, FRACTION, JAX, USE, Greedy, Outcome

_CREATE = "JAX_PJRT_CLIENT_CREATE_OPTIONS"
_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
_MANY = "max_split_size_mb:512," * 30
# Of a list, one behind the other.
_LISTED = (
    f"{_CREATE}='preallocate:true;memory_fraction:0.95' python t.py",
    f"{_CREATE}='memory_fraction:0.1; memory_fraction : 0.95' python t.py",
    f"{CONF}='a:1 , {FRACTION} : 0.95' python t.py",
    f"{CONF}={_MANY}{FRACTION}:0.95 python t.py",
    f"export {CONF}='{_MANY.replace(',', ' , ')}{FRACTION}:0.95'",
)
_LISTED_OVERRIDES = (
    f"{_CREATE}='preallocate:true;allocator:platform' python t.py",
    f"{CONF}={_MANY}backend:cudaMallocAsync python t.py",
    f"setenv {_ALLOCATOR} platform; python t.py",
    f"set -gx {_ALLOCATOR} platform; python t.py",
    f"mpiexec -genv {_ALLOCATOR} platform python t.py",
)
_LISTED_HARMLESS = (
    f"export {CONF}={FRACTION}:0.2;python t.py",
    f"exec env {CONF}=backend:native,{FRACTION}:0.1>/log python t.py --backend:nccl",
    f"{_CREATE}=preallocate:true;python t.py",
    f"{CONF}=expandable_segments:True torchrun t.py\ncat <<E\nbackend: nccl\nE",
    f"echo {_ALLOCATOR} is not set, nor {JAX}",
    f"nohup time -p echo {JAX} python3",
)
# The name stands behind the letter of an option.
_BEHIND_A_LETTER = (
    ["env", f"-S{JAX}=0.95 python t.py"],
    ["su", "app", f"-c{JAX}=0.95 python t.py"],
    ["su", "app", f"-lc{JAX}=0.95 python t.py"],
    ["strace", f"-E{JAX}=0.95", "python", "t.py"],
    ["sh", "-c", f"strace -E{JAX}=0.95 python t.py"],
)
# A text that only names the option, with how often it is written and used.
_NAMED = (
    f'[[ "$*" == *{USE}* ]] || set -- "$@" {USE} 0.1; exec vllm serve m "$@"',
    f'case " $* " in *" {USE}"*) ;; *) set -- "$@" {USE} 0.1;; esac; exec vllm serve m "$@"',
    f"exec vllm serve m {USE} 0.1>/log",
    f"exec vllm serve m {USE} 0.1;",
    f"vllm serve m {USE} 0.1& wait",
)
# What stands behind is a pattern, or a word that a wrapper takes nothing from.
_NO_VALUES = (
    f"for a; do case $a in {USE}=*) U=${{a#*=}};; esac; done; python t.py",
    f"[[ $1 == {USE}=* ]] || python t.py",
    f"sudo mkdir -p /x; export {JAX}=${{{JAX}:-0.1}}; python t.py",
    f"exec env -u LD_PRELOAD vllm serve m {USE}=$U",
    f"nice -n 5 env A=b vllm serve m {USE}=$U",
    f"su app -c 'vllm serve m {USE}=$U'",
    f"sudo -Eu app sh -c 'vllm serve m {USE}=$U'",
    f'echo "{JAX}=${JAX}"; python t.py',
    f"U=${{U:-0.9}}; vllm serve m {USE}=$U",
    "tritonserver --backend-config=tensorflow,gpu-memory-fraction=0.15; sleep 3",
    "tritonserver --backend-config=tensorflow,gpu-memory-fraction=0.15|tee /log",
)
_SOUGHT = (
    f"if vllm serve --help | grep -q -- {USE}; then exec vllm serve m {USE} 0.1; fi",
    f"vllm serve --help | grep -q -- {USE} && exec vllm serve m {USE} 0.1",
)
_NAMED_ALONE = (
    f"echo 'with {USE}'; exec vllm serve m {USE} 0.1",
    f"echo 'with {USE}'\nexec vllm serve m {USE} 0.1",
)


def places() -> Iterator[Greedy]:
    yield from _texts("listed", _LISTED, "denied", "denied")
    yield from _texts("listed", _LISTED_OVERRIDES, "kept", "denied")
    yield from _texts("listed", _LISTED_HARMLESS, "kept", "kept")
    yield from _texts("named", _NAMED, "kept", "kept")
    inner = [variable("U", "0.1"), variable(JAX, "0.1")]
    yield from _texts("no value", _NO_VALUES, "kept", "kept", inner)
    lost = [f"sudo -u app sh -c 'vllm serve m {USE}=${{U:-0.9}}'", f"env -i sh -c 'vllm serve m {USE}=${{U:-0.9}}'"]
    yield from _texts("lost by a shell", lost, "limited", "denied", [variable("U", "0.1")])
    yield from _texts("sought", _SOUGHT, "kept", "kept")
    yield from _texts("named alone", _NAMED_ALONE, "warned", "denied")
    yield from _texts("before a redirection", [f"vllm serve m {USE} >/log 0.95"], "denied", "denied")
    for words in _BEHIND_A_LETTER:
        yield Greedy(f"behind a letter: {words}", {"command": words}, "denied", "denied")
    by_mpi = ["mpiexec", "-genv", JAX, "0.95", "python", "t.py"]
    yield Greedy("a variable and its value as words", {"command": by_mpi}, "lowered", "lowered")
    for option in ("-u", "--unset"):
        unset = {"command": ["env", option, JAX, "python3", "t.py"]}
        yield Greedy(f"a variable that {option} takes away", unset, "kept", "kept")
    unread = {"env": [variable("F", None, **CONFIG_MAP)]}
    of_map = {"command": ["mpiexec", "-genv", JAX, "$(F)", "python", "t.py"]} | unread
    yield Greedy("a variable and a reference as words", of_map, "lowered", "denied")
    twice = {"args": [USE, f"{JAX}=0.9"]}
    yield Greedy("a variable as an option's value", twice, "lowered", "lowered")
    yield from _documents()
    yield from _sentences()


def _documents() -> Iterator[Greedy]:
    unread: dict[str, Any] = {"env": [variable("F", None, **CONFIG_MAP)]}
    for member, under_mps in (
        (f'"{JAX}":"$(F)"', "warned"),
        (f'"{CONF}":"backend:cudaMallocAsync"', "kept"),
        (f'"{_ALLOCATOR}" : "platform"', "kept"),
        ('"TF_GPU_ALLOCATOR":"cuda_malloc_async"', "kept"),
        (f'"{JAX}":{" " * 600}"0.95"', "denied"),
        (f'"{_CREATE}":"a:1;memory_fraction:0.95"', "denied"),
    ):
        document = f'{{"env_vars":{{{member}}}}}'
        command = ["ray", "job", "submit", "--runtime-env-json", document, "--", "python", "t.py"]
        name = f"in JSON: {member[:60]}"
        yield Greedy(name, unread | {"command": command}, under_mps, "denied")  # type: ignore[arg-type]
    for text in (
        '["--backend-config=tensorflow,gpu-memory-fraction=0.1","--http-port=1"]',
        f"- {USE}\n- '0.1'\n",
        f'{{"{USE}": 0.1}}',
    ):
        yield Greedy(f"within the share in a document: {text}", {"env": [variable("C", text)]}, "kept", "kept")
        above = [variable("C", text.replace("0.1", "0.95"))]
        yield Greedy(f"above it: {text}", {"env": above}, "warned", "denied")


def _sentences() -> Iterator[Greedy]:
    note = f"see {USE} in the docs of vLLM"
    yield Greedy("a sentence in a variable", {"env": [variable("NOTE", note)]}, "kept", "kept")
    prompt = ["python", "bot.py", "--prompt", f"Explain {USE} of vLLM"]
    yield Greedy("a sentence in a word", {"args": prompt}, "kept", "kept")
    for sentence in (f"what does {USE} do?", f"{USE} rocks!", f"{USE} information", f"Start it with {USE} 0.15."):
        yield Greedy(f"a sentence: {sentence}", {"args": ["python", "bot.py", sentence]}, "kept", "kept")
        yield Greedy(f"one in a variable: {sentence}", {"env": [variable("P", sentence)]}, "kept", "kept")
    within = json.dumps({"run": f"vllm serve m {USE}=0.15\nexport {JAX}=0.1\nexit 1"})
    yield Greedy("lines in JSON within the share", {"args": ["x", within]}, "kept", "kept")
    above = json.dumps({"run": f"vllm serve m\n{JAX}=0.95 python t.py"})
    yield Greedy("lines in JSON above it", {"args": ["x", above]}, "denied", "denied")
    triton = "tritonserver --backend-config=tensorflow,gpu-memory-fraction=0.15; x"
    yield Greedy("a command behind Triton's", {"env": [variable("P", triton)]}, "kept", "kept")
    image = {"command": ["docker", "run", "-e", JAX, "5gpu/img"]}
    yield Greedy("no value behind a variable's name", image, "kept", "kept")
    digits = {"args": [f"vllm serve m {USE} \u0660.\u0669\u0665"]}
    yield Greedy("digits of another alphabet in a text", digits, "denied", "denied")
    for number in ("nan", "inf", "Infinity", "+nan"):
        yield Greedy(
            f"{number}, which is no sentence", {"env": [variable("E", f"{USE} {number}")]}, "lowered", "lowered"
        )


def _texts(
    kind: str, texts: Sequence[str], under_mps: Outcome, sliced: Outcome, env: Sequence[dict[str, Any]] = ()
) -> Iterator[Greedy]:
    for text in texts:
        fields = {"command": ["bash", "-c", text], "env": list(env)}
        yield Greedy(f"{kind}: {text[:90]!a} {len(text)}", fields, under_mps, sliced)
