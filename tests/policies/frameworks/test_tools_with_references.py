"""What a tool or a service gets from a Secret is no setting, unless it may start another program with it."""

import pytest

from policies.grant import Decision, Denied, Grant
from tests.bypass.attempt import variable
from tests.policies.pods import container, decided, pod, policies

SLICED = policies("strategy: time-slicing")
HARMLESS = [
    'for k in host port user db; do sed -i "s|__${k}__|$S|g" "/etc/app/$k.conf"; done',
    'for m in tokenizer weights config vocab; do gh release download "$S" -R a/b -p "$m.tgz" -O "/m/$m.tgz"; done',
    'gh repo clone "$S" /src -- --depth 1 --branch main',
    'pg_isready -h "$H"',
    "until pg_isready -h $H -U $S; do sleep 1; done",
    'redis-cli -h "$H" ping',
    "until redis-cli -h $H -a $S ping | grep PONG; do sleep 1; done",
    'python3 -m pip install -r "$S"',
    "/opt/venv/bin/python -m pip install $S",
    "sudo python3 -m pip install $S",
    "sudo -nu app curl $S",
    "uv pip install -r $S",
    "tailscale up --authkey $S",
    "mount-s3 $H /x && gcsfuse $S /y",
    'for E in s q; do sed "1$E/a/b/" "$S"; done',
    'for F in one two three four five; do for G in a b c d; do sed -i "s/$F/$S/" $G.yaml; done; done',
]
OF_OTHERS = [
    'psql -c "$S"',
    "python3 -m $S",
    "python3 $S -m pip",
    "python3 -m pipx run $S",
    "python3 -m curl $S",
    "./python3 -m pip $S",
    "uv run $S",
    "uv $S pip",
    "service x $S",
    "tailscale ssh x $S",
    "npm run $S",
    "sudo -nu curl vllm serve m $S",
    "sudo --prompt curl vllm serve m $S",
    './pg_isready -h "$H"',
    'python3() { vllm serve m "$@"; }; python3 -m pip $S',
    'pip() { vllm serve m "$@"; }; python3 -m pip x; pip $S',
    "pg_isready() { vllm serve m $S; }; pg_isready",
    "pg_isready && vllm serve m $S",
    '{ E=e; echo a | sed "s/a/vllm serve m $S/$E"; }',
    'for E in e d; do sed "1$E vllm serve m $S" x; done',
    'if x; then E="-n -e"; fi; sed $E "1e vllm serve m $S" x',
    'for E in a b c d e; do for F in 1 2 3 4; do sed "$F$E vllm serve m $S" x$E$F; done; done',
]


def decision_on(text: str) -> Decision:
    env = [variable(name, None, valueFrom={"secretKeyRef": {"name": "a", "key": "b"}}) for name in "HS"]
    return decided(pod("0.2", container(command=["bash", "-c", text], env=env)), SLICED)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_tool_or_a_service_takes_no_setting(text: str) -> None:
    assert isinstance(decision_on(f"{text}; exec vllm serve m --gpu-memory-utilization=0.18"), Grant)


@pytest.mark.parametrize("text", OF_OTHERS)
def test_what_may_start_a_framework_with_it_is_denied(text: str) -> None:
    assert isinstance(decision_on(text), Denied)
