"""What commands say of errors may be any word that they get, where a substitution has it written with the rest."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

SLICED = policies("strategy: time-slicing")
ELSEWHERE = (
    "nproc",
    "nproc --all 2>/dev/null",
    "nproc >/dev/null 2>&1",
    'cd "$X" >/dev/null 2>&1 && pwd',
    'cd "$X" &>/dev/null && pwd',
    'cd "$X" >&/dev/null && pwd',
    'cd "$X" 2>>/x.log && pwd',
    'sleep "$X" 2>&-',
    "nvidia-smi -L 2>&1 | wc -l",
    "{ nvidia-smi -L; nvidia-smi; } 2>&1 | wc -l",
    'sleep "$X" >&2',
    "nproc 2>/tmp/x.log",
    'nproc 2>>"$DIR/err.log"',
    'nproc 2>>"$LOG.err"',
    "nproc 2>/tmp/err.$$",
    'sleep "$X" 2>/tmp/$$',
    'sleep "$X" 2>/logs/0',
    'nvidia-smi -L 2>"$DIR/smi.log" | wc -l',
)
IN_IT = (
    'sleep "$X" 2>&1',
    '[ "$X" -gt 1 ] 2>&1',
    '[[ "$X" -gt 1 ]] 2>&1',
    'cd "$X" 2>&1',
    'shift "$X" 2>&1',
    'openssl rand -hex "$X" 2>&1',
    '{ wc -l < "$X"; } 2>&1',
    "( : ${Q:?$X} ) 2>&1",
    "{ A=$((X)); } 2>&1",
    'for i in 1; do sleep "$X"; done 2>&1',
    'if sleep "$X"; then exit; fi 2>&1',
    'exec 2>&1; sleep "$X"',
    'sleep "$X" 2>&1 >/dev/null',
    'sleep "$X" 3>&1 2>&3',
    'sleep "$X" 2>/dev/stdout',
    'sleep "$X" 2>"$LOG"',
    'sleep "$X" &>/dev/stdout',
    'sleep "$X" 2<&1',
    'sleep "$X" 2<>/dev/stdout',
    'sleep "$X" 2>//dev/stdout',
    'sleep "$X" 2>stdout',
    'sleep "$X" 2>/tmp/../dev/stdout',
    'sleep "$X" 2>/./dev/stdout',
    'sleep "$X" 2>/tmp/$Y',
    'sleep "$X" 2>/tmp/{a,../dev/stdout}',
    'sleep "$X" 2>/de$Y',
    'sleep "$X" 2>/d?v/std*',
    'sleep "$X" 2>/proc/thread-self/fd/$((0+1))',
    'sleep "$X" 2>/dev/fd/$#',
)


def serves_with(command: str) -> dict[str, Any]:
    secret = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
    text = f"exec vllm serve m --gpu-memory-utilization 0.1 -j $({command})"
    return pod("0.2", container(command=["bash", "-c", text], env=[secret]))


@pytest.mark.parametrize("command", ELSEWHERE)
def test_errors_that_are_written_elsewhere_make_no_words(command: str) -> None:
    assert granted(serves_with(command), SLICED).warnings == ()


@pytest.mark.parametrize("command", IN_IT)
def test_errors_that_are_written_with_the_rest_make_it_unread(command: str) -> None:
    assert denied(serves_with(command), SLICED).code == "MemoryArgumentAboveShare"
