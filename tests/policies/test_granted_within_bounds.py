"""
What a pod is granted is within every bound, by an oracle of its own: it adds up the limits in the patched pod as
Kubernetes adds up requests, in fractions, and knows nothing of how the rules count.
"""

import re
from fractions import Fraction
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.decision import decide
from policies.grant import Grant
from policies.pod import Pod
from tests.policies.pods import GPU, TIMESLICED, VGPU, container, decided, pod, policies
from webhook.patch import operations

THOUSANDTHS = st.integers(1, 1000).map(lambda milli: f"{milli / 1000:.3f}")
BOUNDS = st.sampled_from(["1", "2", "0.5", "0.25"]) | THOUSANDTHS
SHARES = st.integers(1, 210).map(lambda milli: f"{milli / 1000:.3f}") | st.sampled_from(["0.25", "30%", "1"])
SIZE = re.compile("gpu-share.dev/share-([0-9]+)m")  # by DRA: one device of that size
RESOURCES = {"mps": VGPU, "time-slicing": TIMESLICED}


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    bounds = sorted((draw(BOUNDS), draw(BOUNDS)), key=Fraction)
    minimum = draw(st.sampled_from(["0.001"] * 3 + bounds[:1]))
    maximum, of_pod = bounds if draw(st.booleans()) else reversed(bounds)
    return {
        "minimum": minimum,
        "maximum": maximum,
        "podMaximum": draw(st.sampled_from([None, of_pod])),
        "rounding": draw(st.sampled_from(["up", "up", "up", "exact"])),
        "whole": draw(st.sampled_from(["vgpus", "gpus"])),
    }


@st.composite
def pods(draw: st.DrawFn, strategy: str) -> dict[str, Any]:
    annotations: dict[str, str] = {}
    groups: dict[str, list[dict[str, Any]]] = {"containers": [], "initContainers": []}
    for number in range(draw(st.integers(1, 8))):
        name = f"c{number}"
        where = draw(st.sampled_from(["containers", "initContainers"])) if number else "containers"
        made = container(name)
        if where == "initContainers" and draw(st.booleans()):
            made["restartPolicy"] = "Always"
        match draw(st.sampled_from(["annotation", "annotation", "limit", "nothing"])):
            case "annotation":
                annotations[f"container.gpu-share.dev/{name}"] = draw(SHARES)
            case "limit":
                resource = draw(st.sampled_from([RESOURCES[strategy]] * 9 + [GPU]))
                made["resources"] = {"limits": {resource: draw(st.integers(0, 4) | st.integers(0, 21))}}
        groups[where].append(made)
    return pod(None, *groups["containers"], annotations=annotations, initContainers=groups["initContainers"])


def gpus(one: dict[str, Any], per_gpu: int) -> Fraction:
    """GPUs in the limits of one container."""
    limits = one.get("resources", {}).get("limits", {})
    if sized := [int(found[1]) for name in limits if (found := SIZE.match(name))]:
        return Fraction(-(-sized[0] * per_gpu // 1000), per_gpu)
    vgpus = sum(int(limits.get(name, 0)) for name in (VGPU, TIMESLICED))
    return Fraction(vgpus, per_gpu) + int(limits.get(GPU, 0))


def effective_request(spec: dict[str, Any], per_gpu: int) -> Fraction:
    """What the scheduler takes from a node for the pod, as the Kubernetes documents define it."""
    started: list[Fraction] = []  # sidecars, in their order
    while_starting = [Fraction(0)]
    for one in spec["initContainers"]:
        beside = sum(started, Fraction(0))
        while_starting.append(beside + gpus(one, per_gpu))
        if one.get("restartPolicy") == "Always":
            started.append(gpus(one, per_gpu))
    running = sum(started, Fraction(0)) + sum((gpus(one, per_gpu) for one in spec["containers"]), Fraction(0))
    return max(running, *while_starting)


def bounds(said: dict[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    maximum = Fraction(said["maximum"])
    of_pod = Fraction(said["podMaximum"]) if said["podMaximum"] is not None else max(maximum, Fraction(1))
    return Fraction(said["minimum"]), maximum, of_pod


@settings(deadline=None, max_examples=500)
@given(
    st.data(),
    rules(),
    st.sampled_from([10, 10, 10, 1, 3, 7, 48, 60]),
    st.sampled_from(["mps", "time-slicing"]),
    st.sampled_from(["device-plugin", "dra"]),
)
def test_no_pod_is_granted_more_or_less_than_its_policy_allows(
    data: st.DataObject, said: dict[str, Any], per_gpu: int, strategy: str, allocation: str
) -> None:
    on = data.draw(pods(strategy))
    written = ", ".join(f"{name}: {value!r}" for name, value in said.items() if value is not None)
    by = policies(f"strategy: {strategy}\nallocation: {allocation}\nshare: {{{written}}}", f"vgpusPerGpu: {per_gpu}")
    read = msgspec.convert(on, Pod)
    decision = decide(read, "team", by)
    if not isinstance(decision, Grant):
        return
    patched = jsonpatch.apply_patch(on, msgspec.to_builtins(operations(read, decision)))["spec"]
    minimum, maximum, of_pod = bounds(said)
    for one in (*patched["initContainers"], *patched["containers"]):
        assert gpus(one, per_gpu) == 0 or minimum <= gpus(one, per_gpu) <= maximum
    assert 0 < effective_request(patched, per_gpu) <= of_pod


def test_the_shipped_bounds_leave_nine_containers_no_second_gpu() -> None:
    shares = {f"container.gpu-share.dev/c{number}": "0.101" for number in range(9)}
    nine = [container(f"c{number}") for number in range(9)]
    assert not isinstance(decided(pod(None, *nine, annotations=shares)), Grant)
    five = {key: share for key, share in shares.items() if key[-1] < "5"}
    assert isinstance(decided(pod(None, *nine, annotations=five)), Grant)
