from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.pods import container, denied, environment, granted, mutated, only_container, pod, policies

DENY = policies("frameworks: {onConflict: deny}")
VLLM = "vllm/vllm-openai:v0.11.0"
FLAG = "--gpu-memory-utilization"


def vllm(*args: str, command: list[str] | None = None) -> dict[str, Any]:
    return pod("0.2", container(image=VLLM, args=list(args)) | ({"command": command} if command else {}))


def after(on: dict[str, Any]) -> list[str]:
    one = only_container(mutated(on))
    return [*one.get("command", ()), *one.get("args", ())]


SPELLINGS = [
    "--gpu-memory-utilization",
    "--gpu_memory_utilization",
    "-gpu-memory-utilization",
    "--gpu_memory-utilization",
    "--gpu-mem",
    "--gpu_mem",
    "--gp",
    "--device-memory-utilization",
]


@pytest.mark.parametrize("flag", SPELLINGS)
@pytest.mark.parametrize(("own", "lowered"), [("0.1", "0.1"), ("0.2", "0.2"), ("0.9", "0.2"), (".9", "0.2")])
def test_an_own_value_is_kept_within_the_share_and_lowered_above_it(flag: str, own: str, lowered: str) -> None:
    assert after(vllm("--model", "m", f"{flag}={own}", "--port", "1")) == [
        "--model", "m", f"{flag}={lowered}", "--port", "1",
    ]  # fmt: skip
    assert after(vllm("--model", "m", flag, own, "--port", "1")) == ["--model", "m", flag, lowered, "--port", "1"]


@pytest.mark.parametrize("flag", SPELLINGS)
@pytest.mark.parametrize("written", ["{}=0.9", "{} 0.9"])
def test_an_own_value_above_the_share_is_denied_where_the_policy_says_so(flag: str, written: str) -> None:
    deny = denied(vllm(*written.format(flag).split()), DENY)
    assert deny.code == "MemoryArgumentAboveShare"
    assert '"0.9"' in deny.message
    assert "(_default.yaml:1)" in deny.message
    granted(vllm(*written.format(flag).replace("0.9", "0.2").split()), DENY)


@pytest.mark.parametrize(
    "value",
    ["NaN", "nan", "inf", "-0.1", "1e9", "1e999999", "9e999999999", "1e-", "", "0x1", "0_1", "\u0660.\u0661", "half",
     "$(OTHER)", "0.1$(OTHER)", "${GPU_SHARE_FRACTION}", "1" * 10_000, "0.1;0.9", "0.201"],
)  # fmt: skip
def test_what_is_not_shown_to_be_within_the_share_is_lowered(value: str) -> None:
    assert after(vllm(f"{FLAG}={value}")) == [f"{FLAG}=0.2"]
    assert denied(vllm(f"{FLAG}={value}"), DENY).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("value", ["0.001", "1e-3", "0.2", "0.20000", "2e-1", ".1", "$(GPU_SHARE_FRACTION)"])
def test_what_is_within_the_share_is_kept_as_it_is_written(value: str) -> None:
    assert after(vllm(f"{FLAG}={value}")) == [f"{FLAG}={value}"]
    assert after(vllm(FLAG, value)) == [FLAG, value]


@pytest.mark.parametrize("value", ["0", "0.0", "-0", "1e-50", "1e-999999", "0.0009"])
def test_next_to_nothing_which_some_frameworks_take_for_no_limit_is_lowered_to_the_share(value: str) -> None:
    assert after(vllm(f"{FLAG}={value}")) == [f"{FLAG}=0.2"]
    (first, *_) = granted(vllm(f"{FLAG}={value}")).warnings
    assert first.endswith(f'{FLAG} was "{value}", which some frameworks take for no limit: lowered')
    assert denied(vllm(f"{FLAG}={value}"), DENY).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize(
    ("name", "value"),
    [("CUPY_GPU_MEMORY_LIMIT", "0%"), ("MXNET_GPU_MEM_POOL_RESERVE", "100"), ("XLA_PYTHON_CLIENT_MEM_FRACTION", "0")],
)
def test_no_limit_is_within_all_of_a_gpu(name: str, value: str) -> None:
    on = pod("1", container(env=[{"name": name, "value": value}]))
    assert environment(only_container(mutated(on, policies("strategy: time-slicing"))))[name] == value


@pytest.mark.parametrize("image", ["nvidia/jax", "cupy/cupy", "ghcr.io/huggingface/text-generation-inference:3"])
def test_a_reference_in_a_variable_is_never_expanded_and_so_lowered(image: str) -> None:
    name = {"nvidia/jax": "XLA_PYTHON_CLIENT_MEM_FRACTION", "cupy/cupy": "CUPY_GPU_MEMORY_LIMIT"}.get(
        image, "CUDA_MEMORY_FRACTION"
    )
    own = [{"name": name, "value": "$(GPU_SHARE_FRACTION)"}]
    on = pod("0.2", container(image=image, env=own))
    assert "$" not in environment(only_container(mutated(on, policies("strategy: time-slicing"))))[name]


def test_a_value_given_twice_is_lowered_twice() -> None:
    assert after(vllm(f"{FLAG}=0.9", FLAG, "0.8", f"{FLAG}=0.1")) == [f"{FLAG}=0.2", FLAG, "0.2", f"{FLAG}=0.1"]


def test_an_argument_split_between_command_and_args() -> None:
    on = vllm("0.9", "--port", "1", command=["vllm", "serve", "m", FLAG])
    assert after(on) == ["vllm", "serve", "m", FLAG, "0.2", "--port", "1"]


def test_a_flag_at_the_end_gets_its_value() -> None:
    assert after(vllm("--model", "m", FLAG)) == ["--model", "m", f"{FLAG}=0.2"]


@pytest.mark.parametrize(
    ("image", "flag", "following"),
    [(VLLM, FLAG, "--model"), ("tensorflow/serving", "--per_process_gpu_memory_fraction", "--model_name=resnet")],
)
def test_a_flag_without_its_value_does_not_eat_the_next_argument(image: str, flag: str, following: str) -> None:
    on = pod("0.2", container(image=image, args=[flag, following, "x"]))
    assert following in after(on)


@pytest.mark.parametrize(
    "word", ["--gpu-memory-utilisation", "--gpus=0.9", "gpu-memory-utilization=0.9", "--max-gpu=0.9"]
)
def test_another_argument_is_not_mistaken_for_it(word: str) -> None:
    words = after(vllm(word))
    assert words == [word, f"{FLAG}=0.2"]


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "exec vllm serve m --gpu-memory-utilization={}"],
        ["sh", "-c", "vllm serve m --gpu-memory-utilization {} --port 1"],
        ["/bin/bash", "-ec", "vllm serve m --gpu_memory_utilization='{}' && true"],
        ["bash", "-c", 'vllm serve m --gpu-memory-utilization "{}";sleep 1'],
        ["sh", "-c", "(vllm serve m --gpu-memory-utilization {})"],
        ["sh", "-c", "vllm serve m --gpu-memory-utilization \\\n  {} \\\n --port 1"],
        ["bash", "start.sh", "--gpu-memory-utilization={}"],
        ["bash", "start.sh", "--gpu-memory-utilization", "{}"],
        ["sh", "-c", "vllm serve m --gpu-mem={}"],
        ["tini", "--", "sh", "-c", "vllm serve m --gpu-memory-utilization={}"],
    ],
)
def test_a_value_in_a_shells_text_is_read_but_never_rewritten(command: list[str]) -> None:
    high = vllm(command=[word.replace("{}", "0.9") for word in command])
    assert denied(high).code == "MemoryArgumentAboveShare"
    low = vllm(command=[word.replace("{}", "0.18") for word in command])
    assert after(low) == [word.replace("{}", "0.18") for word in command]
    assert granted(low).warnings == ()


@pytest.mark.parametrize("value", ["$GPU_SHARE_FRACTION", "${GPU_SHARE_FRACTION}", "$(GPU_SHARE_FRACTION)"])
def test_a_shell_may_use_what_the_plugin_tells_it(value: str) -> None:
    granted(vllm(command=["sh", "-c", f"vllm serve m {FLAG}={value}"]))


@pytest.mark.parametrize(
    ("image", "name", "own", "lowered"),
    [
        ("nvidia/jax", "XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75", "0.2"),
        ("nvidia/jax", "XLA_PYTHON_CLIENT_MEM_FRACTION", " 0.1 ", " 0.1 "),
        ("cupy/cupy", "CUPY_GPU_MEMORY_LIMIT", "50%", "20%"),
        ("cupy/cupy", "CUPY_GPU_MEMORY_LIMIT", "20%", "20%"),
        ("cupy/cupy", "CUPY_GPU_MEMORY_LIMIT", "1073741824", "1073741824"),
        ("pytorch/pytorch:2.10.0", "PYTORCH_CUDA_ALLOC_CONF", "a:1,per_process_memory_fraction:0.5,b:2",
         "a:1,per_process_memory_fraction:0.2,b:2"),
        ("pytorch/pytorch:2.10.0", "PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.1",
         "per_process_memory_fraction:0.1"),
        ("pytorch/pytorch:2.6.0", "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "expandable_segments:True"),
        ("ghcr.io/huggingface/text-generation-inference:3", "CUDA_MEMORY_FRACTION", "0.5", "0.5"),
        ("ghcr.io/huggingface/text-generation-inference:3", "CUDA_MEMORY_FRACTION", "1.5", "0.9"),
    ],
)  # fmt: skip
def test_an_own_variable_is_kept_or_lowered(image: str, name: str, own: str, lowered: str) -> None:
    on = pod("0.2", container(image=image, env=[{"name": name, "value": own}]))
    assert environment(only_container(mutated(on))) == {name: lowered}


@pytest.mark.parametrize("word", ["/models/bash", "sh", "busybox"])
def test_an_argument_that_is_called_like_a_shell_is_none(word: str) -> None:
    assert after(vllm("--served-model-name", word, f"{FLAG}=0.9")) == ["--served-model-name", word, f"{FLAG}=0.2"]
    assert after(vllm("--served-model-name", word))[-1] == f"{FLAG}=0.2"


def test_a_variable_from_elsewhere_is_replaced_or_denied() -> None:
    own = [{"name": "XLA_CLIENT_MEM_FRACTION", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]
    on = pod("0.2", container(image="nvidia/jax", env=own))
    assert only_container(mutated(on))["env"] == [{"name": "XLA_CLIENT_MEM_FRACTION", "value": "0.2"}]
    assert denied(on, DENY).code == "MemoryArgumentAboveShare"


def test_triton_keeps_its_other_backend_settings() -> None:
    own = ["tritonserver", "--backend-config=python,shm=1", "--backend-config", "tensorflow,version=2",
           "--backend-config=tensorflow,gpu-memory-fraction=0.9", "--backend-config",
           "tensorflow,gpu-memory-fraction=0.1"]  # fmt: skip
    on = pod("0.2", container(image="nvcr.io/nvidia/tritonserver:25.01-py3", command=own))
    own[4] = own[4].replace("0.9", "0.2")
    assert after(on) == own


WORDS = st.sampled_from(
    ["--model", "m", "-x", "--", "-", "", "serve", "--a=b", "--gpu", "0.5", "-1", "\u00e9", "--max-model-len=4096", "="]
)


@given(
    st.lists(WORDS, max_size=6),
    st.lists(WORDS, max_size=6),
    st.sampled_from(SPELLINGS),
    st.sampled_from(["0.1", "0.9", "x"]),
)
def test_all_other_words_stay_and_stay_in_order(before: list[str], behind: list[str], flag: str, value: str) -> None:
    words = after(vllm(*before, f"{flag}={value}", *behind))
    kept = [word for word in words if not word.startswith((f"{flag}=", "--gpu-memory-utilization="))]
    assert kept == [*before, *behind] or "--gpu" in before + behind  # an abbreviation, with the word behind it


CLUSTER = """\
frameworks:
- name: house
  images: [house/*]
  programs: [housed run]
  imageTakesArguments: true
  memory: {spellings: [{argument: --memory, value: "gpu:{percent}"}]}
  source: https://example.com
- name: vllm
  images: [vllm-openai]
  source: https://example.com
"""


def test_the_cluster_file_adds_and_replaces_entries() -> None:
    by = policies(cluster=CLUSTER)
    added = only_container(mutated(pod("0.2", container(image="registry:5000/house/llm:1")), by))
    assert added["args"] == ["--memory=gpu:20"]
    run = only_container(mutated(pod("0.25", container(command=["housed", "run"])), by))
    assert run["args"] == ["--memory=gpu:25"]
    assert "args" not in only_container(mutated(pod("0.2", container(image=VLLM)), by))
