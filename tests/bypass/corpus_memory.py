"""Pods that tell a framework to take more of the GPU's memory than their share, in every way to write that."""

from collections.abc import Iterator

from tests.bypass.attempt import Attempt, by_webhook, variable
from tests.bypass.corpus_memory_dialects import dialects
from tests.bypass.corpus_memory_nothing import of_nothing
from tests.bypass.corpus_memory_overriding import in_any_image, overriding
from tests.bypass.corpus_memory_places import places
from tests.bypass.corpus_memory_shell import shell_texts
from tests.bypass.corpus_memory_texts import texts, wrapped
from tests.bypass.corpus_memory_variables import of_variables
from tests.bypass.corpus_memory_ways import ways
from tests.bypass.greedy import (
    CONF,
    CONFIG_MAP,
    COUNT,
    FRACTION,
    JAX,
    LABEL,
    NOTE,
    SECRET,
    TORCH,
    USE,
    Greedy,
    vllm,
)

DIGITS = variable("N", "95")


def greedy() -> list[Greedy]:
    """List every one."""
    of_words = (*_expanded(), *_unread(), *wrapped(), *texts(), *shell_texts(), *dialects(), *ways(), *places())
    return [*of_words, *of_variables(), *of_nothing(), *_variables(), *_others(), *in_any_image(), *overriding()]


def memory() -> Iterator[Attempt]:
    """Yield them as attempts: under time-slicing, those that are denied there."""
    for one in greedy():
        if one.under_mps == "denied":
            yield by_webhook(f"memory: {one.name}", "MemoryArgumentAboveShare", one.pod(), ALLOWING)
        elif one.under_mps == "lowered":
            yield Attempt(f"memory: {one.name}", one.pod(), "harmless", rules=ALLOWING)
        if one.sliced == "denied":
            name = f"memory under time-slicing: {one.name}"
            yield by_webhook(name, "MemoryArgumentAboveShare", one.pod(), f"strategy: time-slicing\n{ALLOWING}")


ALLOWING = "environment: {envFrom: allow}"


def _expanded() -> Iterator[Greedy]:
    for name, words, env in (
        ("an argument of a variable", [f"{USE}=$(N)"], [variable("N", "0.95")]),
        ("an argument apart of a variable", [USE, "$(N)"], [variable("N", "0.95")]),
        ("a whole word of a variable", ["$(N)"], [variable("N", f"{USE}=0.95")]),
        ("two words of variables", ["$(A)", "$(N)"], [variable("A", USE), variable("N", "0.95")]),
        ("a part of the option's name", ["--gpu-$(N)=0.95"], [variable("N", "memory-utilization")]),
        ("the dashes of a variable", ["$(N)gpu-memory-utilization=0.95"], [variable("N", "--")]),
        ("an abbreviation of a variable", ["$(N)=0.95"], [variable("N", "--gp")]),
        ("the last digits of a variable", [f"{USE}=0.$(N)"], [DIGITS]),
        ("a variable of another one", [f"{USE}=$(B)"], [variable("N", "0.9"), variable("B", "$(N)5")]),
        ("a chain of variables", [f"{USE}=$(C)"], [DIGITS, variable("B", "0.$(N)"), variable("C", "$(B)")]),
        ("a variable given twice", [f"{USE}=$(N)"], [variable("N", "0.1"), variable("N", "0.95")]),
        ("an empty variable in the name", ["--gpu-$(E)memory-utilization=0.95"], [variable("E", "")]),
        ("a variable that comes later", [f"{USE}=$(B)"], [variable("B", "$(N)"), DIGITS]),
        ("an escaped reference", [f"{USE}=$$(N)"], [variable("N", "0.1")]),
        ("a reference to nothing", [f"{USE}=$(NOBODY)"], []),
        ("a port of a service", [f"{USE}=0.$(DNS_SERVICE_PORT)"], []),
        ("a reference that does not end", [f"{USE}=$(N"], [variable("N", "0.1")]),
        ("a name with spaces", [f"{USE}=$(a b)"], [variable("a b", "0.95")]),
    ):
        yield Greedy(name, vllm(*words, env=env), "lowered", "lowered")
    told = [variable("A", "$(GPU_SHARE_FRACTION)")]
    yield Greedy("the share through a variable, which is too late", vllm(f"{USE}=$(A)", env=told), "lowered", "lowered")
    yield Greedy("an escaped reference to the share", vllm(f"{USE}=$$(GPU_SHARE_FRACTION)"), "lowered", "lowered")
    yield Greedy("a reference to the share", {"args": [f"{USE}=$(GPU_SHARE_FRACTION)"]}, "kept", "kept")
    yield Greedy("a small value of a variable", vllm(f"{USE}=$(N)", env=[variable("N", "0.1")]), "kept", "kept")


def _unread() -> Iterator[Greedy]:
    for name, source in (("a ConfigMap", CONFIG_MAP), ("a Secret", SECRET), ("an annotation", NOTE)):
        env = [variable("X", None, **source)]
        yield Greedy(f"a value of {name}", vllm(f"{USE}=$(X)", env=env), "lowered", "denied")
        yield Greedy(f"a value apart of {name}", vllm(USE, "$(X)", env=env), "lowered", "denied")
        yield Greedy(f"a whole word of {name}", vllm("$(X)", env=env), "warned", "denied")
        yield Greedy(
            f"a word behind an option, of {name}", {"args": ["--port", "$(X)"], "env": env}, "warned", "denied"
        )
        yield Greedy(f"another option's value of {name}", {"args": ["--port=$(X)"], "env": env}, "kept", "kept")
        yield Greedy(f"the name of an option of {name}", {"args": ["--gpu-$(X)=0.9"], "env": env}, "warned", "denied")
        again = [*env, variable("Y", "0.$(X)")]
        yield Greedy(f"a variable of {name}, once removed", vllm(f"{USE}=$(Y)", env=again), "lowered", "denied")
    for name, source in (("a label", LABEL), ("a number of CPUs", COUNT)):
        env = [variable("X", None, **source)]
        yield Greedy(f"a value of {name}", vllm(f"{USE}=0.$(X)", env=env), "lowered", "denied")
        yield Greedy(f"a word of {name}, which is no option", {"args": ["--name", "$(X)"], "env": env}, "kept", "kept")
        yield Greedy(f"the name of an option of {name}", {"args": ["--$(X)=0.9"], "env": env}, "warned", "denied")
    from_all = {"envFrom": [{"configMapRef": {"name": "a"}}]}
    for name, words, mps in (
        ("a value", [f"{USE}=$(X)"], "lowered"),
        ("a whole word", ["$(X)"], "warned"),
        ("the share, which envFrom may set", [f"{USE}=$(GPU_SHARE_FRACTION)"], "lowered"),
    ):
        yield Greedy(f"{name} by envFrom", vllm(*words, **from_all), mps, "denied")  # type: ignore[arg-type]
    for name in ("GPU_SHARE_MEMORY_MIB", "NVIDIA_VISIBLE_DEVICES"):
        yield Greedy(f"a value of the plugin's {name}", vllm(f"{USE}=0.$({name})"), "lowered", "denied")


def _variables() -> Iterator[Greedy]:
    for name, value in (
        (CONF, f"{FRACTION} : 0.95"),
        (CONF, f" {FRACTION}:0.95"),
        (CONF, f"a:1, {FRACTION}:0.95"),
        (CONF, f"a:[1:2,b:3],{FRACTION}:0.95,"),
        (CONF, f"{FRACTION}:0.1,{FRACTION}:0.95"),
        (CONF, "per_process_memory_ fraction:0.95"),
        ("PYTORCH_ALLOC_CONF", f"{FRACTION}:0.95"),
        (JAX, "0.95"),
        (JAX, "nan"),
        ("XLA_CLIENT_MEM_FRACTION", "0.95"),
        ("CUPY_GPU_MEMORY_LIMIT", "95%"),
        ("JAX_PJRT_CLIENT_CREATE_OPTIONS", "preallocate:false;memory_fraction:0.95"),
        ("OPTION_GPU_MEMORY_UTILIZATION", "0.95"),
        ("OPTION_gpu_memory_utilization", "0.95"),
        ("SM_VLLM_Gpu_Memory_Utilization", "0.95"),
        ("SM_VLLM_gpu-memory-utilization", "0.95"),
        ("SM_VLLM_GPU_MEMORY_UTILIZATION", "0.95"),
        ("SM_VLLM_DEVICE_MEMORY_UTILIZATION", "0.95"),
    ):
        yield Greedy(f"{name}={value}", {"env": [variable(name, value)]}, "lowered", "lowered")
        through = [variable("A", value), variable(name, "$(A)")]
        yield Greedy(f"{name} through a variable: {value}", {"env": through}, "lowered", "lowered")
    for env in (
        [variable("CUPY_GPU_MEMORY_LIMIT", "99999999999")],
        [variable("A", "99999999999"), variable("CUPY_GPU_MEMORY_LIMIT", "$(A)")],
    ):
        yield Greedy(f"bytes by {len(env)} variables", {"env": env}, "limited", "lowered")
    yield Greedy("env NAME=value", {"command": ["env", f"{JAX}=0.95", "python", "x"]}, "lowered", "lowered")
    parted = ["sh", "-c", "vllm serve m $A-memory-utilization=0.95"]
    for wrapper in (["env"], ["env", "--"], ["env", "-i", "--"], ["nice", "env", "--"], ["sudo", "--"]):
        before = [*wrapper, "A=--gpu"]
        yield Greedy(f"{' '.join(before)} before a shell", {"command": [*before, *parted]}, "limited", "denied")
    spaced = {"command": ["env", f"{CONF}={FRACTION} : 0.95", "python", "x"]}
    yield Greedy("env NAME=value with spaces", spaced, "denied", "denied")
    small, unread = variable(CONF, f"{FRACTION}:0.1"), variable("PYTORCH_ALLOC_CONF", None, **CONFIG_MAP)
    yield Greedy("settings by reference beside a literal", {"image": TORCH, "env": [small, unread]}, "warned", "denied")
    partly = variable(CONF, "a:1,$(X)")
    from_map = [variable("X", None, **CONFIG_MAP), partly]
    yield Greedy("settings partly by reference", {"image": TORCH, "env": from_map}, "warned", "denied")
    yield Greedy("a variable by reference", {"env": [variable(JAX, None, **CONFIG_MAP)]}, "lowered", "denied")
    yield Greedy("a variable of a label", {"env": [variable(JAX, None, **LABEL)]}, "lowered", "denied")
    twice = [variable(JAX, "0.1"), variable(JAX, "0.95")]
    yield Greedy("a setting given twice", {"env": twice}, "lowered", "lowered")


def _others() -> Iterator[Greedy]:
    greedy_vllm = vllm(f"{USE}=0.95")
    for name in ("none", "jax", "nobody-knows-this", ""):
        named = {"gpu-share.dev/framework": name}
        yield Greedy(f"the framework {name!a}", greedy_vllm, "lowered", "lowered", named)
        of_container = {"framework.gpu-share.dev/main": name}
        yield Greedy(f"the framework {name!a} of the container", greedy_vllm, "lowered", "lowered", of_container)
    other = {"image": "tensorflow/serving", "command": ["vllm", "serve", "m", "--gp=0.95"]}
    yield Greedy("an image that starts another framework", other, "lowered", "lowered")
    ours = ["--per_process_gpu_memory_fraction=0.1", f"{USE}=0.95"]
    yield Greedy(
        "a setting behind another's that fits", {"image": "tensorflow/serving", "args": ours}, "lowered", "lowered"
    )
    of_all = {"args": ["--backend-config=gpu-memory-fraction=0.95"]}
    yield Greedy("a setting of all of Triton's backends", of_all, "lowered", "lowered")
    yield Greedy(
        "the same apart", {"command": ["tritonserver", "--backend-c", "gpu-memory-fraction=0.95"]}, "lowered", "lowered"
    )
    yield Greedy("Triton's abbreviated", {"command": ["tritonserver", "--tf-gpu-mem=0.95"]}, "lowered", "lowered")
    of_sglang = [variable("SM_SGLANG_mem-fraction-static", "0.95")]
    yield Greedy("SageMaker's SGLang in small letters", {"env": of_sglang}, "kept", "lowered")
    small = {"command": ["env", "SM_VLLM_gpu_memory_utilization=0.95", "serve"]}
    yield Greedy("env NAME=value in small letters", small, "lowered", "lowered")
    yield Greedy("SageMaker's SGLang", {"env": [variable("SM_SGLANG_MEM_FRACTION_STATIC", "0.95")]}, "kept", "lowered")
    yield Greedy(
        "MXNet's reserve in digits", {"env": [variable("MXNET_GPU_MEM_POOL_RESERVE", "8e1")]}, "lowered", "lowered"
    )
    yield Greedy("LMDeploy's cache", {"args": ["lmdeploy", "--cache-m=1"]}, "kept", "denied")
    yield Greedy(
        "LMDeploy's cache in blocks", {"args": ["lmdeploy", "--cache-max-entry-count", "9"]}, "lowered", "lowered"
    )
    both = [variable(JAX, "0.1"), variable("CUPY_GPU_MEMORY_LIMIT", "95%")]
    yield Greedy("a variable behind another's that fits", {"env": both}, "lowered", "lowered")
