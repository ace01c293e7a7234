import copy
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.migration.aliyun import Aliyun, MemoryUnit
from policies.migration.foreign_pods import MIB, System, Translation, translate_pod
from policies.migration.hami import Hami
from policies.pod import Pod
from policies.share import Share
from tests.policies.pods import container, pod

H200 = 143_771 * MIB  # as nvidia-smi says
T4 = 15_360 * MIB
GI = 1024 * MIB


def asking(resources: dict[str, Any], name: str = "main", **fields: Any) -> dict[str, Any]:
    return container(name, resources={"limits": resources}, **fields)


def translated(system: System, *containers: dict[str, Any], **fields: Any) -> Translation:
    given_pod = pod(None, *containers, **fields)
    before = copy.deepcopy(given_pod)
    made = translate_pod(given_pod, system)
    assert given_pod == before
    msgspec.convert(made.pod, Pod)
    return made


def share_of(system: System, resources: dict[str, Any]) -> str | None:
    made = translated(system, asking(resources))
    assert made.undecided == []
    said: dict[str, str] = made.pod["metadata"]["annotations"]
    return said.get("gpu-share")


def undecided(system: System, resources: dict[str, Any], **fields: Any) -> str:
    (sentence,) = translated(system, asking(resources), **fields).undecided
    return sentence


# --- HAMi -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "share"),
    [
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}, "0.021"),
        ({"nvidia.com/gpumem": "3k"}, "0.021"),  # one GPU, by HAMi's default
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 143_771}, "1"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 30}, "0.3"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 30, "nvidia.com/gpucores": 50}, "0.5"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50, "nvidia.com/gpucores": 30}, "0.5"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50, "nvidia.com/gpucores": 0}, "0.5"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 5, "nvidia.com/gpucores": 300}, "1"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpumem-percentage": 90}, "0.021"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 0, "nvidia.com/gpumem-percentage": 90}, "0.9"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 0, "nvidia.com/gpumem-percentage": 0}, "1"),
        ({"nvidia.com/gpu": 1}, "1"),
        ({"nvidia.com/gpu": 4}, "4"),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 100}, "2"),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 100, "nvidia.com/gpucores": 100}, "2"),
        ({"nvidia.com/gpucores": 20}, "1"),  # all of the memory
        ({"nvidia.com/gpu": 0}, None),
        ({"nvidia.com/priority": 1}, None),
        ({"cpu": 1}, None),
    ],
)
def test_a_pod_of_hami_asks_for_no_less_than_before(resources: dict[str, Any], share: str | None) -> None:
    assert share_of(Hami(H200), resources) == share


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}, "parts of 2 GPUs"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 143_772}, "is more than the 143771 MiB of --gpu-memory"),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": "0.5"}, "is not a whole number"),
        ({"nvidia.com/gpu": "a\u001b[31m"}, "is not a whole number"),
        ({"nvidia.com/gpumem-percentage": 101}, "denies more than 100"),
    ],
)
def test_what_has_no_equal_share_is_not_guessed(resources: dict[str, Any], told: str) -> None:
    sentence = undecided(Hami(H200), resources)
    assert told in sentence
    assert sentence.isprintable()


def test_an_amount_of_memory_needs_that_of_the_gpu() -> None:
    assert "--gpu-memory" in undecided(Hami(None), {"nvidia.com/gpumem": 3000})
    assert "--gpu-memory" in undecided(Aliyun(None), {"aliyun.com/gpu-mem": 3})
    assert share_of(Hami(None), {"nvidia.com/gpumem-percentage": 20}) == "0.2"


@given(st.integers(1, 300_000), st.integers(1, 300_000))
def test_the_share_of_an_amount_is_exact_up_to_the_next_thousandth(amount: int, total: int) -> None:
    if amount > total:
        assert "is more than" in undecided(Hami(total * MIB), {"nvidia.com/gpumem": amount})
        return
    share = share_of(Hami(total * MIB), {"nvidia.com/gpumem": amount})
    assert share is not None
    part = Fraction(amount, total)
    assert part <= Fraction(Share.parse(share), 1000) < part + Fraction(1, 1000)


def test_resources_of_the_other_system_leave_the_pod_and_others_stay() -> None:
    both = {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 20}
    mixed = container(resources={"limits": {**both, "cpu": 2}, "requests": {**both, "memory": "1Gi"}})
    made = translated(Hami(None), mixed, asking(both, "other"), container("third"))
    first, second, third = made.pod["spec"]["containers"]
    assert first["resources"] == {"limits": {"cpu": 2}, "requests": {"memory": "1Gi"}}
    assert "resources" not in second
    assert "resources" not in third


def test_what_asks_for_nothing_of_the_other_system_stays_as_it_is() -> None:
    odd = [container(resources={"limits": {}, "requests": None}), container("b", resources={"limits": {"cpu": 1}})]
    assert translated(Hami(None), *odd).pod == pod(None, *odd)


def test_a_pod_with_init_containers_alone_is_no_traceback() -> None:
    written = pod(None)
    written["spec"] = {"containers": None, "initContainers": [asking({"nvidia.com/gpumem-percentage": 20}, "a")]}
    assert translate_pod(written, Hami(None)).pod["metadata"]["annotations"] == {"container.gpu-share.dev/a": "0.2"}


def test_a_limit_counts_before_a_request_as_for_hami() -> None:
    limits, requests = {"nvidia.com/gpumem-percentage": 20}, {"nvidia.com/gpumem-percentage": 50}
    made = translated(Hami(None), container(resources={"limits": limits, "requests": requests}))
    assert made.pod["metadata"]["annotations"] == {"gpu-share": "0.2"}


def test_each_container_gets_its_own_share() -> None:
    memory = "nvidia.com/gpumem-percentage"
    first = [asking({memory: 20}, "prepare")]
    made = translated(Hami(None), asking({memory: 50}), asking({memory: 20}, "b"), initContainers=first)
    assert made.pod["metadata"]["annotations"] == {
        "container.gpu-share.dev/prepare": "0.2",
        "container.gpu-share.dev/main": "0.5",
        "container.gpu-share.dev/b": "0.2",
    }


def test_a_container_that_is_not_the_default_one_is_named() -> None:
    made = translated(Hami(None), container("proxy"), asking({"nvidia.com/gpumem-percentage": 50}))
    assert made.pod["metadata"]["annotations"] == {"container.gpu-share.dev/main": "0.5"}
    annotations = {"kubectl.kubernetes.io/default-container": "main"}
    named = translated(
        Hami(None), container("proxy"), asking({"nvidia.com/gpumem-percentage": 50}), annotations=annotations
    )
    assert named.pod["metadata"]["annotations"] == {**annotations, "gpu-share": "0.5"}


@pytest.mark.parametrize("key", ["gpu-share", "gpu-share.dev/share"])
def test_a_share_that_is_there_already_stays(key: str) -> None:
    made = translated(Hami(None), asking({"nvidia.com/gpumem-percentage": 50}), annotations={key: "0.1"})
    assert made.pod["metadata"]["annotations"] == {key: "0.1"}
    assert any("is on the pod already" in one for one in made.became)


def test_the_scheduler_of_hami_is_removed_and_others_stay() -> None:
    share = asking({"nvidia.com/gpumem-percentage": 50})
    assert "schedulerName" not in translated(Hami(None), share, schedulerName="hami-scheduler").pod["spec"]
    assert translated(Hami(None), share, schedulerName="volcano").pod["spec"]["schedulerName"] == "volcano"


def test_annotations_and_variables_of_hami_are_accounted_for() -> None:
    annotations = {"nvidia.com/use-gputype": "A100", "hami.io/gpu-scheduler-policy": "spread", "mine": "x"}
    env = [{"name": "CUDA_DISABLE_CONTROL", "value": "true"}, {"name": "CUDA_DEVICE_MEMORY_LIMIT_0", "value": "1g"}]
    made = translated(Hami(None), container(env=env), annotations=annotations)
    told = " ".join(made.became)
    for name in ("use-gputype", "gpu-scheduler-policy", "CUDA_DISABLE_CONTROL", "CUDA_DEVICE_MEMORY_LIMIT_0"):
        assert name in told
    assert "mine" not in told


# --- Alibaba ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "unit", "share"),
    [
        ({"aliyun.com/gpu-mem": 3}, "GiB", "0.2"),
        ({"aliyun.com/gpu-mem": 3}, "MiB", "0.001"),
        ({"aliyun.com/gpu-mem": 3072}, "MiB", "0.2"),
        ({"aliyun.com/gpu-mem": 15}, "GiB", "1"),
        ({"aliyun.com/gpu-mem": 3, "aliyun.com/gpu-count": 1}, "GiB", "0.2"),
        ({"aliyun.com/gpu-mem": 3, "aliyun.com/gpu-core.percentage": 45}, "GiB", "0.45"),
        ({"aliyun.com/gpu-mem": 0}, "GiB", None),
    ],
)
def test_memory_of_alibaba_is_a_part_of_the_gpu(resources: dict[str, Any], unit: MemoryUnit, share: str | None) -> None:
    assert share_of(Aliyun(T4, unit), resources) == share


def test_all_units_that_alibaba_counts_of_a_gpu_are_all_of_it() -> None:
    assert share_of(Aliyun(15_109 * MIB), {"aliyun.com/gpu-mem": 14}) == "1"
    assert share_of(Aliyun(15_109 * MIB), {"aliyun.com/gpu-mem": 13}) == "0.882"


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"aliyun.com/gpu-mem": 8, "aliyun.com/gpu-count": 2}, "over as many GPUs"),
        ({"aliyun.com/gpu-count": 1}, "without aliyun.com/gpu-mem"),
        ({"aliyun.com/gpu-mem": 16}, "is more than the 15360 MiB"),
        ({"aliyun.com/gpu-mem": 3, "aliyun.com/gpu-core.percentage": 101}, "at most 100"),
    ],
)
def test_what_alibaba_divides_otherwise_is_not_guessed(resources: dict[str, Any], told: str) -> None:
    assert told in undecided(Aliyun(T4), resources)


def test_memory_over_several_gpus_by_the_label_is_not_guessed() -> None:
    written = pod(None, asking({"aliyun.com/gpu-mem": 8}))
    written["metadata"]["labels"] = {"aliyun.com/gpu-count": "2"}
    assert "over as many GPUs" in translate_pod(written, Aliyun(T4)).undecided[0]


def test_variables_of_alibaba_that_a_program_reads_are_named() -> None:
    reads = container(args=["--fraction=$(ALIYUN_COM_GPU_MEM_CONTAINER)"])
    (told,) = translated(Aliyun(None), reads).became
    assert "GPU_SHARE_FRACTION" in told
    own = container(env=[{"name": "ALIYUN_COM_GPU_MEM_IDX", "value": "0"}])
    assert any("ALIYUN_COM_GPU_MEM_IDX" in one for one in translated(Aliyun(None), own).became)
