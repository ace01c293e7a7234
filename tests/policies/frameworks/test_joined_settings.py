"""Settings that a start script joins to what their variable holds already, wherever in the script it does so."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

TORCH = "pytorch/pytorch:2.11.0-cuda13.0-cudnn9-devel"
C, OTHER = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
M = "per_process_memory_fraction:"
X = f"{C}=${C},expandable_segments:True"
QUOTED = f'{C}="${{{C}}},expandable_segments:True"'
MPS, SLICED = policies(), policies("strategy: time-slicing")
JOINED = [
    *(f"{one} python -u main.py" for one in (X, QUOTED, f"CUDA_LAUNCH_BLOCKING=1 {X}", f"env {X}")),
    f"{X} torchrun main.py",
    f"exec env {QUOTED} python main.py",
    f"cd /w && export {X} && python main.py",
    f"pip install -r r.txt && export {QUOTED} && python main.py",
    f"source /opt/venv/bin/activate\nexport {X}\npython main.py",
    f"source /opt/venv/bin/activate\n{X}\npython main.py",
    f'eval "$(conda shell.bash hook)"; conda activate x\nexport {X}\npython main.py',
    f"if [ -f x ]; then export {X}; fi; python main.py",
    f"if [ -f x ]; then export {X}; fi; {QUOTED} python main.py",
    f"run() {{ {X} python main.py; }}; run",
    f"bash -c 'export {X}; python main.py'",
    f"export {C}=${C},a:1\nexport {C}=${C},b:2\npython main.py",
    f'cd /w && {C}="${{{C}:+${C},}}a:1" python main.py',
    f'cd /w && export {C}="${{{C}:+${C},}}a:1" && python main.py',
    f"set -u; cd /w && {C}=${{{C}:-}},a:1 python main.py",
    f"cd /w && {C}=${{{C}:?}},a:1 python main.py",
    f"{C}=${C},{M}$GPU_SHARE_FRACTION python main.py",
    f"cd /w && {C}=${C} python main.py",
    f"f() {{ declare -gx {C}+=,a:1; python main.py; }}; f",
    f"f() {{ echo x; }}\ndeclare {C}+=,a:1\nf; python main.py",
    f": ${{{C}:=a:1}}; f() {{ local x; : ${{{C}:=a:1}}; python main.py; }}; f",
    f"f() {{ local {C}=${C},a:1; {C}=${C},b:1 python main.py; }}; f",
    f': "${{{C}:=a:1}}"; export {C}+=,b:1; python main.py',
    f': "${{{C}:=a:1}}"; export {C}="${C},b:1"; python main.py',
    f'echo "{C}=${C}"; {X} python main.py; echo {C}=${C}',
]


def script(text: str, env: dict[str, str], shell: str = "bash") -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in env.items()]
    return pod("0.2", container(image=TORCH, command=[shell, "-c", text], env=listed))


@pytest.mark.parametrize("env", [{}, {C: "max_split_size_mb:128"}, {C: f"{M}0.1,a:1"}], ids=str)
@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("text", JOINED)
def test_what_is_joined_to_the_share_is_granted_without_a_word(text: str, shell: str, env: dict[str, str]) -> None:
    for by in (MPS, SLICED):
        assert granted(script(text, env, shell), by).warnings == ()


TOO_MUCH = [
    f"{C}=${C},{M}0.9 python main.py",
    f"cd /w && export {C}=${C},{M}0.9 && python main.py",
    f"env {C}=${C},{M}0.9 python main.py",
    f"{C}={M}0.9; {X} python main.py",
    f"f() {{ {C}={M}0.9; }}; f; {X} python main.py",
    f"read {C} < /x; {X} python main.py",
    f"printf -v {C} %s {M}0.9; {X} python main.py",
    f"for {C} in {M}0.9; do {X} python main.py; done",
    f"{C}=; {X} python main.py",
    f"{C}=a:1; {X} python main.py",
    f"unset {C}; {X} python main.py",
    f"env -u {C} bash -c '{X} python main.py'",
    f"env -i bash -c '{X} python main.py'",
    f"f() {{ local {C}; {X} python main.py; }}; f",
    f"f() {{ local {C}; {C}+=,a:1 python main.py; }}; f",
    *(f"f() {{ {one} {C}+=,a:1; python main.py; }}; f" for one in ("local", "declare", "local -x", "typeset -x")),
    f"f() {{ local {C}+=,a:1; env {X} python main.py; }}; f",
    f"f() {{ local {C}+=,a:1; export {QUOTED}; python main.py; }}; f",
    f'f() {{ local {C}; : "${{{C}:=a:1}}"; {C}+=,b:1; python main.py; }}; f',
    f': "${{{C}:=a:1,{M}0.9}}"; export {C}+=,b:1; python main.py',
    f"{C}=${{{C}%%,*}},a:1 python main.py",
    f"cd /w && {C}=${{{C}:+a:1}} python main.py",
    f"{C}=a:1,${C} python main.py",
    *(f"f() {{ {one} {C}+=,a:1; python main.py; }}; f" for one in ("builtin local", "command local", "declare -x")),
    f"f() {{ local {C}; {C}=${C} python main.py; }}; f",
    f"f() {{ local {C}; export {C}=${C}; python main.py; }}; f",
    f"f() (\n local {C}+=,a:1; python main.py\n)\nf",
    f"f() (\n declare {C}+=,a:1; python main.py\n)\nf",
    f"L=local; f() {{ $L {C}+=,a:1; python main.py; }}; f",
    f"f() {{ eval 'local {C}+=,a:1'; python main.py; }}; f",
    f"f() {{ eval 'declare {C}+=,a:1'; python main.py; }}; f",
    f"f() {{ declare {C}+=,a:1 -g; python main.py; }}; f",
    *(
        f"f() {{ {one} {C}; : ${{{C}:=a:1}}; export {C}; python main.py; }}; f"
        for one in ("local", "declare", "local x=1")
    ),
    f"f() {{ local {C}; g; }}; g() {{ : ${{{C}:=a:1}}; export {C}; python main.py; }}; f",
    f"f() {{ local {C}; python main.py ${{{C}:=a:1}}; }}; f",
    f"f() ( local {C}; : ${{{C}:=a:1}}; export {C}; python main.py ); f",
    f'{C}="${C} e1" python main.py',
    f'{C}=",${C} e1" python main.py',
    f"{C}=${C}9 python main.py",
    f"{C}=${C}:0.9 python main.py",
    f"{C}=${C},0.9 python main.py",
    f"{C}=${C},$Y python main.py",
    f"{C}=${C},a:$Y python main.py",
    f"{C}=${C},{M}$Y python main.py",
]


@pytest.mark.parametrize("text", TOO_MUCH)
def test_what_may_leave_more_than_the_share_is_denied(text: str) -> None:
    assert denied(script(text, {C: f"{M}0.1"}), SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("joined", [X, QUOTED, f"{C}+=,a:1", f"env {X}", f"{C}=,${C}"])
def test_it_is_denied_where_the_share_stands_in_the_variable_of_the_other_name(joined: str) -> None:
    assert denied(script(f"{joined} python main.py", {OTHER: "a:1"}), SLICED).code == "MemoryArgumentAboveShare"
    both = {OTHER: "a:1", C: "b:1"}
    assert granted(script(f"cd /w && {X} python main.py", both), SLICED).warnings == ()


def test_a_value_with_blanks_is_split_behind_env_and_in_no_assignment() -> None:
    env = {C: f"a:1 python {M}0.1"}
    assert denied(script(f"env {X} main.py", env), SLICED).code == "MemoryArgumentAboveShare"
    assert denied(script(f"cd /w && export {X} && main.py", env, "sh"), SLICED).code == "MemoryArgumentAboveShare"
    for text in (f"env {QUOTED} main.py", f"cd /w && export {X} && main.py"):
        assert granted(script(text, env), SLICED).warnings == ()


def test_the_same_holds_for_a_list_with_another_sign() -> None:
    name = "JAX_PJRT_CLIENT_CREATE_OPTIONS"
    text, env = f'cd /w && {name}="${name};%s" python main.py', {name: "memory_fraction:0.1"}
    assert granted(script(text % "allocator:bfc", env), SLICED).warnings == ()
    assert denied(script(text % "memory_fraction:0.9", env), SLICED).code == "MemoryArgumentAboveShare"


def test_the_words_of_an_array_are_handed_on_by_what_is_joined_to_it() -> None:
    text = f"{C}=({M}0.9); {C}+=,a:1 python main.py"
    assert 'to "per_process_memory_fraction:0.9", more than' in denied(script(text, {OTHER: "a:1"}), SLICED).message
