"""A number behind the letters of an option completes no option's name, unless one has digits or the number is empty."""

from typing import Any

import pytest

from policies.frameworks.expansion import A_NUMBER, A_VALUE
from policies.frameworks.shell.written_values import mark_of_written
from policies.grant import Denied, Grant
from tests.bypass.attempt import variable
from tests.policies.pods import container, decided, pod, policies

SERVED = "exec vllm serve m --gpu-memory-utilization=0.18"
SLICED = policies("strategy: time-slicing")
NUMBERS = [
    "make -C /src -j$(nproc) install",
    'make -j"$(nproc)"',
    "make -j`nproc`",
    "make -j$(( $(nproc) / 2 ))",
    "make -j$((0 - 9))",
    "cmake --build build -j$(nproc --ignore=2)",
    "N=$(nproc); ninja -j$N",
    "make -j${JOBS:-$(nproc)}",
    "make -j$(grep -c ^processor /proc/cpuinfo)",
    "parallel -j$(getconf _NPROCESSORS_ONLN)",
    "./x -c$(nproc) -e$(nproc) -f$(nproc) -g$(id -u) -k$(nproc) -m$(nproc) -n$(id -g) -p$(nproc) -t$(date +%s)",
    "./x -m$((MEMORY / 2))g -p$(ls /x | wc -l)",
    'sh -c "make -j$(nproc) all"',
    "C=nproc; [ x ] && C=hostname; ./run $($C)",
    " ".join(f'if [ -n "${name}X" ]; then {name}=${name}X; else {name}=$(nproc); fi;' for name in ("TP", "W", "P"))
    + " eval ./x --tp $TP --w $W --port $P",
    "make -j$CPUS",
    "make -j$(CPUS)",
]
NAMES = [
    "vllm serve m --gpu$(nproc --x)-memory-utilization=0.95",
    "vllm serve m --gpu$(wc -l < /x)_memory_utilization 0.95",
    "vllm serve m --gpu$(nproc)-memory$(nproc)-utilization=0.95",
    "N=$(nproc --x); vllm serve m --gpu$N-memory-utilization=0.95",
    "A=--gpu$(nproc --x); A+=-memory-utilization=0.95; vllm serve m $A",
    "vllm serve m --gpu-memory-utilization$(nproc --x)=0.95",
    "vllm serve m --gp$(nproc --x) 0.95",
    "vllm serve m --gpu$(nproc)$X",
    "vllm serve m --gpu$(nproc)$(hostname)",
    "vllm serve m -$(nproc)$X",
    "vllm serve m --g$(nproc; echo pu-memory-utilization=0.95)",
    "nproc() { echo pu-memory-utilization=0.95; }; vllm serve m --g$(nproc)",
    "vllm serve m --g$(hostname)",
    "vllm serve m --g$(grep -c x *)",
    'eval "vllm serve m --gpu$(nproc)-memory-utilization=0.95"',
]
OWN = """
frameworks:
- name: acme
  programs: [acme]
  memory: {spellings: [{argument: --pool2-size}, {argument: --top-4th}, {argument: --depth3}]}
  source: https://acme.example
"""


def on(text: str) -> dict[str, Any]:
    cpus = {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    secret = {"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
    env = [variable("CPUS", None, **cpus), variable("X", None, **secret)]
    return pod("0.2", container(image="vllm/vllm-openai:v0.11.0", command=["bash", "-c", text], env=env))


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_behind_a_letter_is_no_setting(text: str) -> None:
    assert isinstance(decided(on(f"{text}; {SERVED}"), SLICED), Grant)


@pytest.mark.parametrize("text", NAMES)
def test_what_may_complete_the_name_of_a_setting_is_denied(text: str) -> None:
    decision = decided(on(text), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize(
    "word",
    [
        "--pool$(nproc)-size=0.9",
        "--pool$(nproc)",
        "--de$(nproc)pth$(nproc)=0.9",
        "--top$((0-4))th=0.9",
        "--to$(nproc)$X",
    ],
)
def test_a_number_in_the_name_of_an_entry_of_the_clusters_own_is_denied(word: str) -> None:
    assert isinstance(decided(on(f"acme {word}"), policies("strategy: time-slicing", OWN)), Denied)


@pytest.mark.parametrize(
    ("words", "mark"),
    [
        (["nproc"], A_NUMBER), (["nproc", "--all"], A_NUMBER), (["nproc", "--ignore", "2"], A_NUMBER),
        (["id", "-u"], A_NUMBER), (["date", "-u", "+%s"], A_NUMBER), (["date", "+%Y%m%d"], A_NUMBER),
        (["wc", "-l"], A_NUMBER), (["stat", "-c", "%s", "/x"], A_NUMBER), (["grep", "-c", "x", "/y"], A_NUMBER),
        (["getconf", "_NPROCESSORS_ONLN"], A_NUMBER),
        (["nproc", "--help"], A_VALUE), (["id", "-un"], A_VALUE), (["date", "+%F"], A_VALUE), (["date", "+%b"], ""),
        (["grep", "-c", "x", "-r"], A_VALUE), (["grep", "-c", "x", "*"], A_VALUE), (["hostname"], A_VALUE),
        (["getconf", "GNU_LIBC_VERSION"], A_VALUE), (["nproc", A_VALUE], ""), (["ls"], ""),
    ],
)  # fmt: skip
def test_a_number_is_what_tools_write_that_is_digits_alone(words: list[str], mark: str) -> None:
    assert mark_of_written(words) == mark


@pytest.mark.parametrize("options", ["-i", "-ri", "-0i", "-es", "-eP", "-lP", "-0rti"])
def test_an_option_of_xargs_that_has_a_word_joined_to_it_alone_takes_no_other(options: str) -> None:
    for text in ("flock test vllm serve {} --gpu-memory-utilization=0.95", "flock curl vllm serve m $X"):
        assert isinstance(decided(on(f"echo m | xargs {options} {text}"), SLICED), Denied)
    for text in ("rm -f {}", "ln -sf {} /usr/lib"):
        assert isinstance(decided(on(f"ls /x | xargs {options} {text}; {SERVED}"), SLICED), Grant)
