"""A pod that is larger than any real one is denied before anything in it is looked at."""

from collections.abc import Callable
from typing import Any

import pytest

from policies.denial import MOST_CHANGES, DeniedError
from policies.frameworks.allowance import MOST_EXPANDED, MOST_MENTIONS, MOST_REFERENCES, MOST_SETTINGS
from policies.size import (
    LONGEST_TEXT,
    MOST_ANNOTATIONS,
    MOST_CONTAINERS,
    MOST_MOUNTS,
    MOST_NAMED,
    MOST_OTHERS,
    MOST_QUANTITIES,
    MOST_SHARES,
    MOST_VARIABLES,
    MOST_VOLUMES,
    MOST_WORDS,
)
from tests.policies.frameworks.recorder import looked_at
from tests.policies.pods import container, denied, granted, limited, mutated, only_container, pod, policies, untouched

WIDE = policies("share: {maximum: '16', podMaximum: '16'}\nenvironment: {envFrom: allow}", "vgpusPerGpu: 60")


def _containers(count: int) -> dict[str, Any]:
    return pod("0.2", *({"name": f"c{number}"} for number in range(count)))


def _initial(count: int) -> dict[str, Any]:
    return pod("0.2", initContainers=[{"name": f"c{number}"} for number in range(count - 1)])


def _shares(count: int) -> dict[str, Any]:
    return pod(None, *(limited(f"c{number}", 1) for number in range(count)))


def _annotations(count: int) -> dict[str, Any]:
    return pod("0.2", annotations={f"a{number}": "" for number in range(count - 1)})


def _split(count: int) -> dict[str, Any]:
    return pod("0.2", container("a", command=["x"] * 9), container("b", args=["x"] * (count - 9)))


def _mounts(count: int) -> dict[str, Any]:
    return pod("0.2", container(volumeMounts=[{"name": "v", "mountPath": f"/m{number}"} for number in range(count)]))


def _added(count: int) -> dict[str, Any]:
    return pod("0.2", container(securityContext={"capabilities": {"add": ["CHOWN"] * count}}))


def _quantities(count: int) -> dict[str, Any]:
    return pod("0.2", container(resources={"limits": {f"a{number}": 1 for number in range(count)}}))


def _hook(count: int) -> dict[str, Any]:
    return pod("0.2", container(lifecycle={"preStop": {"exec": {"command": ["x", "x" * count]}}}))


def _value(count: int) -> dict[str, Any]:
    return pod("0.2", container(env=[{"name": "A", "value": "x" * count}]))


COUNTED: list[tuple[str, int, Callable[[int], dict[str, Any]]]] = [
    ("containers", MOST_CONTAINERS, _containers),
    ("containers", MOST_CONTAINERS, _initial),
    ("containers with a share", MOST_SHARES, _shares),
    ("characters in the names", MOST_NAMED, lambda count: pod("0.2", container("c" * count))),
    ("words", MOST_WORDS, lambda count: pod("0.2", container(args=["x"] * count))),
    ("words", MOST_WORDS, _split),
    ("characters in one word", LONGEST_TEXT, lambda count: pod("0.2", container(command=["x" * count]))),
    ("characters in one word", LONGEST_TEXT, lambda count: pod("0.2", container(args=["x", "x" * count]))),
    ("characters in one word", LONGEST_TEXT, _value),
    ("characters in one word", LONGEST_TEXT, _hook),
    ("variables", MOST_VARIABLES, lambda count: pod("0.2", container(env=[{"name": "A"}] * count))),
    ("volume mounts", MOST_MOUNTS, _mounts),
    ("quantities", MOST_QUANTITIES, _quantities),
    ("envFrom", MOST_OTHERS, lambda count: pod("0.2", container(envFrom=[{}] * count))),
    ("capabilities", MOST_OTHERS, _added),
    ("volumes", MOST_VOLUMES, lambda count: pod("0.2", volumes=[{"name": f"v{i}"} for i in range(count)])),
    ("tolerations", MOST_OTHERS, lambda count: pod("0.2", tolerations=[{"key": "a"}] * count)),
    ("annotations", MOST_ANNOTATIONS, _annotations),
]  # fmt: skip


@pytest.mark.parametrize(("what", "most", "of"), COUNTED)
def test_a_pod_may_have_so_many_and_not_one_more(what: str, most: int, of: Callable[[int], dict[str, Any]]) -> None:
    granted(of(most), WIDE)
    deny = denied(of(most + 1), WIDE)
    assert deny.code == "PodTooLarge"
    assert what in deny.message
    assert f"{most + 1} " in deny.message


def test_a_pod_without_a_share_may_be_as_large_as_it_likes() -> None:
    untouched(pod(None, *({"name": f"c{number}"} for number in range(MOST_CONTAINERS + 1))))


def test_where_the_mode_is_warn_it_is_admitted_with_a_warning() -> None:
    on = _containers(MOST_CONTAINERS + 1)
    assert "PodTooLarge" in untouched(on, policies("mode: warn")).warnings[0]


def _greedy(count: int) -> dict[str, Any]:
    return pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=["--gp=1"] * count))


def test_a_setting_that_is_lowered_again_and_again_is_warned_of_once_and_denied_above_sixteen() -> None:
    assert only_container(mutated(_greedy(MOST_CHANGES)))["args"] == ["--gp=0.2"] * MOST_CHANGES
    assert len([one for one in granted(_greedy(MOST_CHANGES)).warnings if "lowered" in one]) == 1
    assert denied(_greedy(MOST_CHANGES + 1)).code == "PodTooLarge"


@pytest.mark.parametrize("beside", [True, False])
def test_variables_that_are_removed_count_with_them(*, beside: bool) -> None:
    strip = policies("environment: {reserved: strip}")
    own = [{"name": f"CUDA_MPS_{number}", "value": ""} for number in range(MOST_CHANGES + 1)]

    def on(count: int) -> dict[str, Any]:
        return (
            pod("0.2", container(), container("b", env=own[:count]))
            if beside
            else pod("0.2", container(env=own[:count]))
        )

    granted(on(MOST_CHANGES), strip)
    assert denied(on(MOST_CHANGES + 1), strip).code == "PodTooLarge"


def test_a_variable_that_hides_the_gpus_again_and_again_counts_too() -> None:
    none = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}
    granted(pod("0.2", container(), *(container(f"c{number}", env=[none]) for number in range(40))))
    assert denied(pod("0.2", container(), container("b", env=[none] * 40))).code == "PodTooLarge"


def test_mounts_that_are_replaced_count_too() -> None:
    scratch = [{"name": "v", "emptyDir": {}}]
    mounts = [{"name": "v", "mountPath": "/dev/shm"}] * (MOST_CHANGES + 1)
    granted(pod("0.2", container(volumeMounts=mounts[1:]), volumes=scratch))
    assert denied(pod("0.2", container(volumeMounts=mounts), volumes=scratch)).code == "PodTooLarge"


@pytest.mark.parametrize(
    "of",
    [
        lambda count: container(args=["--gpu-memory-utilization=0.1"] * count),
        lambda count: container(args=["--mem=0.1"] * count),  # an abbreviation of SGLang's, perhaps
        lambda count: container(command=["sh", "-c", "vllm" + " --gpu-memory-utilization=0.1" * count]),
        lambda count: container(env=[{"name": "CUPY_GPU_MEMORY_LIMIT", "value": "10%"}] * count),
    ],
)
def test_settings_within_the_share_are_counted_as_well(of: Callable[[int], dict[str, Any]]) -> None:
    granted(pod("0.2", of(MOST_SETTINGS)))
    assert denied(pod("0.2", of(MOST_SETTINGS + 1))).code == "PodTooLarge"
    few = of(MOST_SETTINGS // 4)
    granted(_each(few, 4))
    assert denied(_each(few, 5)).code == "PodTooLarge"


def test_a_text_that_is_not_read_is_denied_for_its_settings_before_each_is_looked_at() -> None:
    looked_at(["fish", "-c", "PYTORCH_ALLOC_CONF=" * MOST_SETTINGS])
    with pytest.raises(DeniedError, match=f"more than {MOST_SETTINGS} times"):
        looked_at(["fish", "-c", "PYTORCH_ALLOC_CONF=" * (MOST_SETTINGS + 1)])


def test_a_pod_may_name_programs_so_often_and_no_more() -> None:
    def on(times: int, containers: int) -> dict[str, Any]:
        text = "; ".join(f"echo {one}" for one in ("vllm serve", "tritonserver", "torchrun", "trtllm-serve") * times)
        return _each(container(command=["bash", "-c", text]), containers)

    granted(on(16, MOST_MENTIONS // 64))
    assert denied(on(16, MOST_MENTIONS // 64 + 1)).code == "PodTooLarge"
    granted(on(1000, 1))  # a word that comes again and again in one script is looked at for the first times


def _each(of: dict[str, Any], count: int) -> dict[str, Any]:
    asked = {f"container.gpu-share.dev/c{number}": "0.1" for number in range(count)}
    return pod(None, *(of | {"name": f"c{number}"} for number in range(count)), annotations=asked)


def test_references_may_make_so_much_text_and_no_more() -> None:
    def bomb(doublings: int) -> dict[str, Any]:
        env = [{"name": "A0", "value": "x" * 1024}]
        env += [{"name": f"A{n + 1}", "value": f"$(A{n})$(A{n})"} for n in range(doublings)]
        return pod("0.2", container(args=["$(A0)"], env=env))

    assert MOST_EXPANDED == 96 * 1024
    granted(bomb(5))
    assert denied(bomb(6)).code == "PodTooLarge"
    assert denied(bomb(1000)).code == "PodTooLarge"


@pytest.mark.parametrize("reference", ["$(A)", "$A"])
def test_there_may_be_so_many_references(reference: str) -> None:
    def on(count: int) -> dict[str, Any]:
        return pod("0.2", container(command=["sh", "-c", f"{reference} " * count], env=[{"name": "A", "value": "b"}]))

    granted(on(MOST_REFERENCES))
    assert denied(on(MOST_REFERENCES + 1)).code == "PodTooLarge"


def test_a_text_of_more_unread_options_than_any_real_one_may_say_anything() -> None:
    sliced = policies("strategy: time-slicing")
    for unit in ("-z`", "-z{"):
        some = container(command=["run", "a text of no shell's, isn't it? " + unit * 1000])
        granted(pod("0.2", some), sliced)
        many = container(command=["run", "a text of no shell's, isn't it? '" + unit * 2000])
        assert denied(pod("0.2", many), sliced).code == "MemoryArgumentAboveShare"


def test_the_text_of_a_pod_that_comes_back_in_the_answer_is_bounded() -> None:
    by_dra = policies("allocation: dra")
    word = "x" * 200_000 + "$(GPU_SHARE_FRACTION)"
    granted(pod("0.2", container(args=[word])), by_dra)
    assert denied(pod("0.2", container(args=[word, word])), by_dra).code == "PodTooLarge"
    conf = {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "\x01" * 4000}
    names = [f"c{number}" for number in range(20)]
    asked = {f"container.gpu-share.dev/{name}": "0.1" for name in names}
    init = [{"name": name, "image": "pytorch/pytorch:2.10.0", "env": [conf]} for name in names]
    assert denied(pod(None, annotations=asked, initContainers=init)).code == "PodTooLarge"


@pytest.mark.parametrize(("own", "of_kubelet", "fits"), [(1900, 50, True), (2048, 0, True), (2049, 0, False)])
def test_a_dollar_of_a_shell_counts_once(own: int, of_kubelet: int, *, fits: bool) -> None:
    on = pod("0.2", container(command=["sh", "-c", "echo $(date)\n" * of_kubelet + "echo $A\n" * own]))
    if fits:
        granted(on)
    else:
        assert "dollar signs" in denied(on).message
