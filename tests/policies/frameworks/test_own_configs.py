"""The option `--config` of a tool is the tool's own; what a framework may get of it is denied under time-slicing."""

from typing import Any

import pytest

from policies.grant import Decision, Denied, Grant
from tests.policies.pods import container, decided, pod, policies

IMAGE = "vllm/vllm-openai:v0.11.0"
SERVED = "exec vllm serve m --gpu-memory-utilization=0.18"
SLICED = policies("strategy: time-slicing")
OWN = [
    "rclone copy s3:models/llama /m --config /etc/rclone.conf --transfers 16",
    "curl --config /x -o y http://z",
    "s3cmd --config=/x get s3://y",
    "oras pull --config /x y",
    "wget --config=/x http://y",
    "timeout 60 sudo rclone --config /x sync a b",
    "TOKEN=$(curl --config /x http://y)",
    "curl --config /x http://y | tar x",
    "[ -f /x ] && rclone --config /x sync a b || exit 1",
    "for one in a b; do curl --config $one http://y; done",
    "otelcol --config /etc/otel.yaml &",
    "/otelcol-contrib --config=/etc/otel.yaml &",
    "litellm --config /etc/litellm.yaml --port 4000 &",
    "crane --config /x pull y z",
    "cmake --build build --config Release",
]
OF_A_FRAMEWORK = [
    "vllm serve m --config /x",
    "rclone copy a b --config /x; vllm serve m --config /x",
    "echo 'vllm serve m --config /x' > /s.sh; sh /s.sh",
    "echo --config /x | xargs vllm serve m",
    'curl() { vllm serve m "$@"; }; curl --config /x',
    "./curl serve m --config /x",
    "/app/litellm serve m --config /x",
    "sudo -nu curl vllm serve m --config /x",
    "time --output curl vllm serve m --config /x",
    'set -- curl vllm serve m --config /x; shift; "$@"',
    "curl --config='vllm serve m --config /x' http://y",
    "curl -w 'vllm serve m --config /x' -o /dev/null http://y > /s.sh; sh /s.sh",
    "cmake -E env vllm serve m --config /x",
    "cmake --build build -- --config /x",
    "wget --use-askpass=/x --config /y",
    "if x; then P=curl; else P=vllm; fi; $P serve m --config /x",
    "for option in --config --x; do vllm serve m $option /x; done",
    "./run 'curl --config /x'",
    "alias curl='vllm serve m'\ncurl --config /x",
]


def decision_on(**fields: Any) -> Decision:
    return decided(pod("0.2", container(image=IMAGE, **fields)), SLICED)


def with_hook(*command: str) -> dict[str, Any]:
    return {"command": SERVED.split()[1:], "lifecycle": {"preStop": {"exec": {"command": list(command)}}}}


@pytest.mark.parametrize("text", OWN)
def test_a_tool_before_the_framework_may_have_a_config_of_its_own(text: str) -> None:
    assert isinstance(decision_on(command=["bash", "-c", f"{text}; {SERVED}"]), Grant)


@pytest.mark.parametrize("text", OF_A_FRAMEWORK)
def test_a_config_that_may_be_the_frameworks_is_denied(text: str) -> None:
    decision = decision_on(command=["bash", "-c", text])
    assert isinstance(decision, Denied)
    assert "set --config, with which vllm takes memory" in decision.deny.message.replace("sets", "set")


def test_what_is_only_possible_is_said_to_be_so() -> None:
    decision = decision_on(command=["bash", "-c", f"echo 'vllm serve m --config /x' > /s.sh; {SERVED}"])
    assert isinstance(decision, Denied)
    assert " may set --config, " in decision.deny.message


@pytest.mark.parametrize(
    "fields",
    [
        with_hook("curl", "--config", "/x", "http://y"),
        with_hook("timeout", "5", "curl", "--config=/x", "http://y"),
        with_hook("sh", "-c", "curl --config /x http://y; sleep 3"),
        {"command": ["rclone", "copy", "a", "b", "--config", "/x"]},
    ],
)
def test_a_hook_or_a_container_of_a_tool_has_a_config_of_its_own(fields: dict[str, Any]) -> None:
    assert isinstance(decision_on(**fields), Grant)


@pytest.mark.parametrize(
    "fields",
    [
        with_hook("vllm", "serve", "m", "--config", "/x"),
        with_hook("./curl", "--config", "/x"),
        with_hook("curl", "--config=vllm serve m --config /x"),
        {"args": ["curl", "--config", "/x"]},  # which the image's vLLM gets
        {"command": ["curl", "--config=x --config y"]},
        {"command": ["./run", "curl $A --config /x"]},
    ],
)
def test_a_hook_or_a_container_of_what_may_be_a_framework_has_not(fields: dict[str, Any]) -> None:
    assert isinstance(decision_on(**fields), Denied)
