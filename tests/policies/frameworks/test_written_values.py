"""What a tool writes is a value only if it can begin no option and has no space, as the tools themselves show."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.frameworks.expansion import A_VALUE, ANYTHING
from policies.frameworks.shell.written_values import writes_a_value
from tests.policies.pods import container, granted, pod, policies

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
VALUES = [
    ["date", "-I"], ["date", "-Iseconds"], ["date", "-u", "+%F"], ["date", "-d", "yesterday", "+%Y-%m-%d"],
    ["date", "-d", "2 days ago", "+%F"], ["date", "-d", "-1 day", "+%s"], ["date", "--date=tomorrow", "+%F"],
    ["mktemp", "-u"], ["mktemp", "-ud"], ["mktemp", "-u", "/tmp/run-XXXXXX"], ["mktemp", "-ut", "run.XXXXXX"],
    ["stat", "-c", "%s", "/etc/passwd"], ["stat", "-c", "%Y", "/etc/passwd"],
    ["shuf", "-i", "8000-9000", "-n", "1"], ["shuf", "-n1", "-i8000-9000"],
    ["printf", "%05d", "7"], ["printf", "run-%s", "a-b"], ["printf", "%s.0\\n", "a", "b"],
    ["printf", "%.2f", "0.25"], ["printf", "%x-%s", "255", "a"], ["printf", "/data/%s/v%d.bin", "a", "2"],
    ["hostname"], ["nproc"], ["id", "-u"], ["wc", "-l"],
]  # fmt: skip
OTHERS = [
    ["date", "-d", ANYTHING], ["date", "+-%F"], ["date", "-d", "1960-01-01", "+%s"], ["date", "-R"],
    ["date", "-d", "99 years ago", "+%s"], ["date", "-f", "/x"],
    ["mktemp", "-"], ["mktemp", ANYTHING], ["mktemp", "--suffix=x y"], ["mktemp", "-u", "A=0.95,XXX"],
    ["stat", "-c", "%n", "x"], ["stat", "-c", "%s", "--printf=-x"], ["stat", "-c", "%s", ANYTHING], ["stat", "x"],
    ["shuf", "-n", "1"], ["shuf", "-e", "--gpu"], ["shuf", "-n", "1", "/x"], ["shuf", "-i", ANYTHING],
    ["printf"], ["printf", "--", "--gpu"], ["printf", "-v", "A"], ["printf", "--gpu"], ["printf", "\\055-gpu"],
    ["printf", "%s-gpu", ""], ["printf", "%s-gpu", "-"], ["printf", "%s%s", "--gpu", "-memory"], ["printf", "%s-x"],
    ["printf", "%s-x", A_VALUE], ["printf", "%.0d--gpu", "0"], ["printf", "%5d", "1"], ["printf", "a b"],
    ["printf", "%b", "\\055"], ["printf", "%s", ANYTHING], ["printf", ANYTHING], ["printf", "a\\n-b"],
    ["printf", "%s", "a b"], ["printf", "%s%s", "XLA_PYTHON_CLIENT_", "MEM_FRACTION=0.95"], ["printf", "%d", "-1"],
    ["printf", "%s=%s", "A", "0.95"], ["printf", "su%s", "do"], ["printf", "/usr-1/bin/%s", "sudo"],
    ["printf", "r-%s", "/sudo"], ["printf", "su%xo", "13"], ["printf", "s%02xo", "13"],
    ["printf", "1" * 257], ["mktemp", "-u", "a" * 257],
]  # fmt: skip


def can_begin_no_option(text: str) -> bool:
    return not any(line.startswith("-") or " " in line for line in text.splitlines())


@pytest.mark.parametrize("words", VALUES, ids=" ".join)
def test_a_value_is_known_and_is_one(words: list[str]) -> None:
    assert writes_a_value(words)
    if shutil.which(words[0]):
        ran = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert can_begin_no_option(ran.stdout)


@pytest.mark.parametrize("words", OTHERS, ids=ascii)
def test_what_may_be_anything_else_is_no_value(words: list[str]) -> None:
    assert not writes_a_value(words)


PIECES = st.sampled_from(["%s", "%d", "%x", "%03d", "%.1f", "%.0d", "%b", "-", "a", "/", "\\n", "%", "0", ".", "="])
OPERANDS = st.sampled_from(["", "a", "-", "-1", "a-b", "--x", "7", "0", ".5", "/x", "a/-b", "\\055", "a b", "%s"])


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(PIECES, min_size=1, max_size=4), operands=st.lists(OPERANDS, max_size=3))
def test_what_printf_writes_as_a_value_can_begin_no_option(shell: str, pieces: list[str], operands: list[str]) -> None:
    words = ["printf", "".join(pieces), *operands]
    if not writes_a_value(words):
        return
    ran = subprocess.run([shell, "-c", '"$@"', shell, *words], capture_output=True, text=True, check=False)
    assert can_begin_no_option(ran.stdout), words


@pytest.mark.parametrize(
    "text",
    [
        "S=$(mktemp -d /tmp/run.XXXXXX)", "S=$(printf %05d $RANK)", "P=$(shuf -i 8000-9000 -n 1)",
        "S=$(stat -c %s /models/m.bin)", "P=$(date -u -d yesterday +%F)", "S=run-$(date -Iseconds)",
    ],
)  # fmt: skip
def test_a_script_may_use_it_under_time_slicing(text: str) -> None:
    script = f"{text}\nexec vllm serve m --gpu-memory-utilization 0.2 --seed=1 --port $P --name $S"
    env = [{"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['rank']"}}}]
    on = pod("0.2", container(command=["bash", "-c", f"P=8000 S=m\n{script}"], env=env))
    granted(on, policies("strategy: time-slicing"))
