"""Variables of a text that take their values from each other, so that reading it again finds a new one each time."""

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

PYTORCH = "PYTORCH_CUDA_ALLOC_CONF"
SERVE = "exec vllm serve m --gpu-memory-utilization 0.1"
SLICED = policies("strategy: time-slicing")
MPS = policies("strategy: mps")
ENV = [
    {"name": "LD_LIBRARY_PATH", "value": "/usr/lib"},
    {"name": "LD_PRELOAD", "value": "/x.so"},
    {"name": "NO_PROXY", "value": "10.0.0.0/8"},
    {"name": "MODEL_PATH", "value": "/m/"},
    {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
]
HARMLESS = (
    f"NEW=/opt/lib:$LD_LIBRARY_PATH; export LD_LIBRARY_PATH=$NEW; {SERVE}",
    f"if true; then NEW=/opt/lib:$LD_LIBRARY_PATH; export LD_LIBRARY_PATH=$NEW; fi; {SERVE}",
    f'P=/x/libjemalloc.so; if [ -n "$LD_PRELOAD" ]; then P="$P:$LD_PRELOAD"; fi; export LD_PRELOAD="$P"; {SERVE}',
    f'export no_proxy="$NO_PROXY,localhost"; export NO_PROXY="$no_proxy"; {SERVE}',
    f'add() {{ A="$B x"; B="$C;$A"; C="$B"; }}; add; echo "$C"; {SERVE}',
    'P=${MODEL_PATH%/}; MODEL_PATH=$P/snapshots/main; vllm serve "$MODEL_PATH" --gpu-memory-utilization 0.1',
    "for i in 1 2; do P=${MODEL_PATH%/}; MODEL_PATH=$P/$i; done; vllm serve $P --gpu-memory-utilization 0.1",
    f'walk() {{ for e in "$1"/*; do if [ -d "$e" ]; then walk "$e"; else echo "$e"; fi; done; }}\nwalk /data\n{SERVE}',
    f'walk() {{ for e in "$1"/*; do n=$(walk "$e"); echo "$n/$e"; done; }}\nwalk /data\n{SERVE}',
)
IN_STEPS = (  # each of which a further reading finds, and none of which grows
    (
        'log() { echo "$1" >&2; }; die() { log "$1"; exit 1; }; need() { [ -n "$1" ] || die "$1 is not set"; }\n'
        'need MODEL_PATH\nexec "$@"'
    ),
    'd() { vllm serve m --gpu-memory-utilization "$1"; }; c() { d "$1"; }; b() { c "$1"; }; a() { b "$1"; }\na 0.1',
    'd() { "$@"; }; c() { d "$@"; }; b() { c "$@"; }; a() { b "$@"; }\na mkdir -p /x\na vllm serve m',
    "serve() { vllm serve m --gpu-memory-utilization $C; }; c() { C=$B; serve; }; b() { B=$A; c; }; A=0.1; b",
)
WITH_THE_SHARE = (
    f'conf="${PYTORCH},expandable_segments:True"; {PYTORCH}="$conf" python t.py',
    f'conf="${PYTORCH},expandable_segments:True"\nexport {PYTORCH}="$conf"\npython t.py',
    f"OLD=${PYTORCH}; export {PYTORCH}=expandable_segments:True,$OLD; python t.py",
)
MADE_UP = (
    'for i in 1 2 3; do A="--g$B"; B="pu-memory$C"; C="-utilization=0.9$D"; D="$D$E"; E=$D; done; vllm serve m "$A"',
    'for i in 1 2; do B=$A.x; A=$B; done; A=$n--g; vllm serve m "$A"pu-memory-utilization=0.9',
    'for i in 1 2 3; do B="${A%x}"; A=$B; done; A=-xxx; vllm serve m "$A-gpu-memory-utilization=0.9"',
    'for i in 1 2; do B=$A; A=-x$B; done; vllm serve m "$A"',
    'for i in 1 2; do B="$A x"; A=$B; done; vllm serve m $A=0.9',
    'f() { vllm serve m "$2"; f "$2" "$3" "$1"; }\nf a b "--g$X"',
    'f() { vllm serve m "$1"; f "$1" x; }\nf --g$(echo pu-memory-utilization)=0.9',
    'python() { command python "$@"; }\nunset -f python\npython t.py $X',
    "f() { command f $X; }\nf",
)


def a_text(text: str) -> dict[str, object]:
    return pod("0.2", container(command=["bash", "-c", text], env=ENV))


@pytest.mark.parametrize("text", HARMLESS)
def test_variables_of_a_cycle_that_reach_no_framework_are_granted_without_a_word(text: str) -> None:
    assert granted(a_text(text), SLICED).warnings == ()
    assert granted(a_text(text), MPS).warnings == ()


@pytest.mark.parametrize("text", IN_STEPS)
def test_functions_that_call_those_before_them_are_read_to_the_last_one(text: str) -> None:
    words = ["--", "vllm", "serve", "m", "--gpu-memory-utilization", "0.1"]
    on = pod("0.2", container(command=["bash", "-c", text, *words], env=ENV))
    assert granted(on, SLICED).warnings == ()


@pytest.mark.parametrize("text", WITH_THE_SHARE)
def test_the_share_is_seen_through_the_variable_by_which_it_is_kept(text: str) -> None:
    image = container(image="pytorch/pytorch:2.10.0-cuda12.8", command=["bash", "-c", text])
    assert granted(pod("0.2", image), SLICED).warnings == ()
    assert granted(pod("0.2", image), MPS).warnings == ()


def test_a_setting_in_a_cycle_is_denied_by_its_own_name() -> None:
    text = f'f() {{ conf="${PYTORCH},a:b"; {PYTORCH}="$conf" python t.py; }}; f'
    assert f"set {PYTORCH} to a reference" in denied(a_text(text), SLICED).message


@pytest.mark.parametrize("text", MADE_UP)
def test_an_option_that_a_cycle_may_make_is_denied_under_time_slicing(text: str) -> None:
    assert denied(a_text(text), SLICED).code == "MemoryArgumentAboveShare"


def test_one_of_many_values_may_begin_an_option_where_what_it_begins_with_is_empty() -> None:
    many = " ".join(f"$n-{number}" for number in range(17))
    text = f'for a in {many} "$n--g"; do A=$a; done; vllm serve m "$A"pu-memory-utilization=0.9'
    assert denied(a_text(text), SLICED).code == "MemoryArgumentAboveShare"
