"""A memory setting is judged in an image that nobody knows too, and none is made there."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, denied, environment, granted, mutated, only_container, pod, policies

TRITON = "--backend-config=tensorflow,gpu-memory-fraction="
OWN = "registry.example/team/server:3"


@pytest.mark.parametrize(
    ("fields", "field", "after"),
    [
        ({"args": ["--per_process_gpu_memory_fraction=0.9"]}, "args", ["--per_process_gpu_memory_fraction=0.2"]),
        ({"command": ["/s"], "args": ["--gpu-memory-utilization", "0.9"]}, "args", ["--gpu-memory-utilization", "0.2"]),
        ({"args": [f"{TRITON}0.9"]}, "args", [f"{TRITON}0.2"]),
        ({"args": ["--model", "m"]}, "args", ["--model", "m"]),
        ({"args": ["--backend-config=python,shm=1"]}, "args", ["--backend-config=python,shm=1"]),
    ],
)  # fmt: skip
def test_an_argument_in_an_unknown_image_is_lowered(fields: dict[str, Any], field: str, after: list[str]) -> None:
    assert only_container(mutated(pod("0.2", container(**(fields | {"image": OWN})))))[field] == after


@pytest.mark.parametrize(
    ("name", "value", "after"),
    [
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9", "0.2"),
        ("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.9", "per_process_memory_fraction:0.2"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "expandable_segments:True"),
        ("CUPY_GPU_MEMORY_LIMIT", "90%", "20%"),
    ],
)
def test_a_variable_in_an_unknown_image_is_lowered(name: str, value: str, after: str) -> None:
    on = pod("0.2", container(image=OWN, env=[{"name": name, "value": value}]))
    assert environment(only_container(mutated(on))) == {name: after}


def test_a_shell_in_an_unknown_image_is_read_too() -> None:
    on = pod("0.2", container(image=OWN, command=["sh", "-c", "vllm serve m --gpu-memory-utilization 0.9"]))
    assert denied(on).code == "MemoryArgumentAboveShare"


def test_an_unknown_image_without_a_setting_is_left_alone() -> None:
    on = pod("0.2", container(image=OWN, args=["--port=1"], env=[{"name": "A", "value": "b"}]))
    assert granted(on).warnings == ()
    assert only_container(mutated(on))["args"] == ["--port=1"]


def test_where_detection_is_off_it_is_judged_all_the_same() -> None:
    on = pod("0.2", container(image=OWN, args=["--gpu-memory-utilization=0.9"]))
    after = only_container(mutated(on, policies("frameworks: {detect: false}")))
    assert after["args"] == ["--gpu-memory-utilization=0.2"]


@pytest.mark.parametrize(
    ("args", "why"), [(["--gpu", "0.5"], "more than the share"), (["--port", "$(PORT)"], "cannot be read")], ids=str
)
def test_where_the_policy_denies_what_is_only_possible_is_still_a_warning_under_mps(args: list[str], why: str) -> None:
    env = [{"name": "PORT", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]
    on = pod("0.2", container(image=OWN, args=args, env=env))
    (warning,) = granted(on, policies("frameworks: {onConflict: deny}")).warnings
    assert why in warning
    assert warning.endswith("MPS limits it")


def test_an_option_behind_a_label_that_may_be_empty_is_one() -> None:
    env = [{"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['l']"}}}]
    on = pod("0.2", container(image=OWN, args=["$(L)--gpu-memory-utilization", "0.95"], env=env))
    assert denied(on).code == "MemoryArgumentAboveShare"


def test_for_whole_gpus_nothing_need_be_read() -> None:
    on = pod("1", container(image=OWN, args=["$(X)"], env=[{"name": "X", "valueFrom": {"secretKeyRef": {}}}]))
    assert granted(on, policies("strategy: time-slicing")).warnings == ()


def test_a_text_that_nobody_runs_does_not_keep_the_setting_from_being_made() -> None:
    args = ["--model=m", "--prompt", "say --gpu-memory-utilization=0.1 and no more"]
    after = only_container(mutated(pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=args))))
    assert after["args"][-1] == "--gpu-memory-utilization=0.2"


GENERAL = [
    ["--gpu", "1"], ["--gpu=1"], ["--gpu", "0"], ["--gpu", "7"], ["--gpus", "0"], ["--gpu-memory", "16"],
    ["--mem", "1"], ["--mem=1.0"], ["--mem", "4"], ["--mem", "4G"], ["--memory", "16Gi"], ["--me", "1"],
    ["--num-gpu", "1"], ["--num-gpus=8"], ["--config", "/app.yaml"], ["--cuda-m", "9"],
    ["--config", "5000"], ["--num-gpu", "128"], ["--cuda-memory", "0:0"], ["--kv-cache-memory", "auto"],
]  # fmt: skip


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("words", GENERAL, ids=" ".join)
@pytest.mark.parametrize("command", [[], ["python", "train.py"], ["/start.sh"], ["mpirun", "-n", "1", "./sim"]])
def test_an_option_that_many_programs_have_is_nobodys_memory_setting(
    words: list[str], command: list[str], strategy: str
) -> None:
    one = container(image=OWN, args=words) | ({"command": command} if command else {})
    by = policies(f"strategy: {strategy}")
    assert granted(pod("0.2", one), by).warnings == ()
    assert only_container(mutated(pod("0.2", one), by))["args"] == words
    text = container(image=OWN, command=["sh", "-c", " ".join([*(command or ["./run"]), *words])])
    assert granted(pod("0.2", text), by).warnings == ()


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("vllm/vllm-openai:v0.11.0", ["--gpu", "1"]),
        (OWN, ["vllm", "serve", "m", "--gpu", "1"]),
        (OWN, ["my-wrapper", "vllm", "serve", "m", "--gpu", "1"]),
        (OWN, ["/start-vllm.sh", "--gpu-mem", "1"]),
        ("registry.example/team/vllm-cuda12:3", ["--gpu-mem", "1.0"]),
        (OWN, ["sh", "-c", "exec vllm serve m --gpu 1"]),
        (OWN, ["./x", "-m", "sglang.launch_server", "--mem", "1"]),
        (OWN, ["/start.sh", "--gpu-mem", "0.9"]),
        (OWN, ["--mem", "0.95"]),
        (OWN, ["sh", "-c", "/start.sh --gpu-mem=.9"]),
        (OWN, ["/vllm.sh", "--num-g", "100000"]),
        ("vllm/vllm-openai:v0.11.0", ["--config", "/my.yaml"]),
        (OWN, ["tritonserver", "--cuda-m=0:70000000000"]),
    ],
)
@pytest.mark.parametrize("annotations", [{}, {"gpu-share.dev/framework": "none"}])
def test_where_a_framework_may_take_it_it_counts(image: str, line: list[str], annotations: dict[str, str]) -> None:
    on = pod("0.2", container(image=image, args=line), annotations=annotations)
    decision = decided(on, policies("strategy: time-slicing"))
    if isinstance(decision, Denied):
        assert decision.deny.code == "MemoryArgumentAboveShare"
    else:
        assert any("lowered" in text for text in granted(on, policies("strategy: time-slicing")).warnings)


def test_the_denial_of_texts_that_are_too_long_to_be_read_says_so() -> None:
    text = 'echo "$(date): $STEP"\n' * 400 + "exec python main.py"
    deny = denied(pod("0.2", container(command=["sh", "-c", text])), policies("strategy: time-slicing"))
    assert "a shell's text (the pod's together are too long to be read)" in deny.message
    assert deny.message.endswith("into a script of the image or of a ConfigMap that is mounted.")


def test_the_denial_of_an_abbreviation_says_what_to_do() -> None:
    deny = denied(pod("0.2", container(image=OWN, args=["--gpu", "0.5"])), policies("strategy: time-slicing"))
    assert 'may set --gpu-memory-utilization (by --gpu) to "0.5", more than the share' in deny.message
    assert "Lower it to the share, write --gpu-memory-utilization where that is meant, or call another" in deny.message


OTHERS = (
    {"command": ["python3", "/s/bench.py", "--gpu", "0"]},
    {"command": ["srun", "--mem=32G", "--gpu", "8", "python3", "/s/x.py"]},
    {"command": ["ffmpeg", "-gpu", "0", "-i", "a"]},
    {"command": ["sh", "-c", "python3 /s/warm.py --gpu 0; vllm serve m --gpu-memory-utilization 0.2"]},
    {"args": ["m"], "lifecycle": {"postStart": {"exec": {"command": ["python3", "/s/warm.py", "--mem", "4"]}}}},
    {"args": ["m"], "env": [{"name": "OPTS", "value": "--mem=32G --gpu 0"}]},
)


@pytest.mark.parametrize("by", [policies(), policies("strategy: time-slicing")], ids=["mps", "time-slicing"])
@pytest.mark.parametrize("image", ["vllm/vllm-openai:v0.11.0", "lmsysorg/sglang:v0.5.0"])
@pytest.mark.parametrize("fields", OTHERS, ids=str)
def test_another_programs_option_beside_a_framework_is_left_alone(fields: dict[str, Any], image: str, by: Any) -> None:
    own = container(image=image, **fields)
    after = only_container(mutated(pod("0.2", own), by))
    for field in fields:
        assert str(own[field])[1:-1] in str(after[field])  # what is added stands behind
    assert not any("lowered" in one or "reference" in one for one in granted(pod("0.2", own), by).warnings)


STARTING = {
    "sh -c": ["sh", "-c", "vllm serve m"],
    "behind other commands": ["bash", "-c", "cd /x && export A=b; exec /opt/venv/bin/vllm serve m"],
    "in another shell": ["bash", "-c", "sh -c 'vllm serve m'"],
    "by a launcher": ["uv", "run", "vllm", "serve", "m"],
    "by conda": ["conda", "run", "-n", "x", "vllm", "serve", "m"],
    "by python": ["bash", "-c", "python3.12 -u -m vllm.entrypoints.openai.api_server --model m"],
}
NOT_STARTING = {
    "a word of a tool": ["bash", "-c", "echo starting vllm serve m; ./start.sh"],
    "a comment": ["bash", "-c", "# vllm serve m\n./start.sh"],
    "a longer name": ["bash", "-c", "./vllm serve-all; my-vllm serve m"],
    "a file": ["./start.sh", "vllm-serve.yaml"],
    "an address": ["./gateway", "--triton-url=tritonserver:8001"],
    "a check": ["bash", "-c", "if pgrep -f 'vllm serve'; then exit; fi; command -v tritonserver; ./start.sh"],
    "a comment behind it": ["bash", "-c", "./start.sh # like vllm serve m"],
    "a part of a path": ["bash", "-c", "PATH=/opt/tritonserver ./start.sh"],
    "a prompt": ["./ask", "How do I start vllm serve m?"],
}


@pytest.mark.parametrize("command", STARTING.values(), ids=STARTING)
def test_a_framework_that_a_text_or_a_launcher_starts_is_a_warning_that_says_what_to_add(command: list[str]) -> None:
    on = pod("0.2", container(image=OWN, command=command))
    (warning,) = granted(on).warnings
    assert warning == (
        "--gpu-memory-utilization=0.2 cannot be added to this command line, add it yourself; vllm does not start with "
        "all of its share: leave about 0.5 GiB of it, by memory.headroom of the policy or by its own setting"
    )
    assert only_container(mutated(on))["command"] == command


@pytest.mark.parametrize("command", STARTING.values(), ids=STARTING)
def test_it_is_none_where_the_setting_is_there(command: list[str]) -> None:
    told = [*command[:-1], f"{command[-1]} --gpu-memory-utilization=0.18"]
    on = command[:-1] + told[-1:] if " " in command[-1] else [*command, "--gpu-memory-utilization=0.18"]
    assert granted(pod("0.2", container(image=OWN, command=on))).warnings == ()


def test_who_has_written_it_into_a_variable_is_not_told_to_add_it() -> None:
    variable = {"name": "VLLM_ARGS", "value": "--gpu-memory-utilization=0.18"}
    on = pod("0.2", container(image="vllm/vllm-openai:v0.11.0", command=["/start.sh"], env=[variable]))
    (warning,) = granted(on).warnings
    assert warning == (
        "--gpu-memory-utilization=0.2 cannot be added to this command line, see that the program gets what a "
        "variable or text says of it"
    )


@pytest.mark.parametrize("command", NOT_STARTING.values(), ids=NOT_STARTING)
def test_what_only_names_a_framework_is_no_start_of_it(command: list[str]) -> None:
    assert granted(pod("0.2", container(image=OWN, command=command))).warnings == ()


def test_a_variable_is_set_for_what_a_text_starts() -> None:
    on = pod("0.2", container(image=OWN, command=["sh", "-c", "python -m paddle.distributed.launch t.py"]))
    names = [one["name"] for one in only_container(mutated(on, policies("strategy: time-slicing")))["env"]]
    assert "FLAGS_fraction_of_gpu_memory_to_use" in names


@pytest.mark.parametrize("args", [["--triton-url=tritonserver:8001"], ["--with", "/opt/tritonserver"]])
def test_options_of_an_entry_point_that_nobody_knows_get_no_argument(args: list[str]) -> None:
    after = only_container(mutated(pod("0.2", container(image=OWN, args=args))))
    assert after["args"] == args


@pytest.mark.parametrize("image", ["openmmlab/lmdeploy:v0.9", OWN])
def test_a_count_of_blocks_behind_an_abbreviation_counts(image: str) -> None:
    text = "lmdeploy serve api_server m --cache-max-entry 100000"
    on = pod("0.2", container(image=image, command=["sh", "-c", text]))
    assert denied(on, policies("strategy: time-slicing")).code == "MemoryArgumentAboveShare"
