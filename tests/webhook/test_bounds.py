"""Whatever comes, a review and its answer cost no more than so much."""

import json
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.size import MOST_SHARES
from tests.bench.worst_cases import POLICIES as WORST
from tests.bench.worst_pods import at_the_limits, images_of_steps, widest, worst_pods
from tests.bench.worst_texts import Worst, makers
from tests.policies.pods import container, pod, policies
from tests.webhook.reviews import call, debugged, patch_of
from tests.webhook.test_patch import POLICIES, pods
from webhook.review import LONGEST_ANSWER, BadCall, review
from webhook.settings import MAX_BODY_BYTES
from webhook.warning_lines import LONGEST_WARNING, MOST_WARNED

SIZE = 16 * 1024
RULES = [pytest.param(by, id=name or "mps") for name, by in WORST.items()]
FIRST, *OTHERS = RULES


def dearest(size: int, by: Any) -> Iterator[Worst]:
    """Yield all dear pods for the first rules, and for each of the others a part: each pod is tried by two of them."""
    place = next(number for number, one in enumerate(WORST.values()) if one is by)
    yield from (one for number, one in enumerate(worst_pods(size)) if place in (0, 1 + number % (len(WORST) - 1)))


def answered(on: dict[str, Any], by: Any) -> dict[str, Any]:
    """Check the bounds of an answer; returns the response."""
    try:
        body = review(json.dumps(call(on)).encode(), by).body
    except BadCall:
        return {}
    assert len(body) <= LONGEST_ANSWER
    response: dict[str, Any] = json.loads(body)["response"]
    warnings = response.get("warnings", [])
    assert all(len(one) <= LONGEST_WARNING for one in warnings)
    assert sum(map(len, warnings)) <= MOST_WARNED
    operations = patch_of(response)
    spec = on["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    mounts = sum(len(one.get("volumeMounts") or ()) for one in containers)
    assert len(operations) <= 32 + 8 * len(containers) + mounts
    return response


@pytest.mark.parametrize("by", RULES)
def test_the_dearest_pods_get_an_answer_within_its_bounds(by: Any) -> None:
    for _, on in chain(dearest(SIZE // 2, by), at_the_limits(SIZE)):
        answered(on, by)


def test_a_policy_that_places_pods_by_as_much_as_it_can_leaves_the_answer_within_its_bound() -> None:
    numbers = [f"{number:02}" for number in range(64)]
    selector = {f"{'a.' * 126}b/{number:a>63}": "v" * 63 for number in numbers}
    taint = {"effect": "NoExecute", "tolerationSeconds": 300, "value": "v" * 63}
    placement = {
        "nodeSelector": selector,
        "tolerations": [taint | {"key": key} for key in selector],
        "runtimeClassName": "a" * 253,
        "schedulerName": "a" * 253,
    }
    by = policies(json.dumps({"placement": placement}))
    for _, on in [("usual", pod("0.2")), *at_the_limits(SIZE)]:
        assert len(review(json.dumps(call(on)).encode(), by).body) <= LONGEST_ANSWER


@settings(deadline=None, max_examples=200)
@given(pods(), st.sampled_from(sorted(POLICIES)))
def test_an_answer_is_within_its_bounds(on: dict[str, Any], name: str) -> None:
    answered(on, POLICIES[name])


@pytest.mark.parametrize("by", [pytest.param(*FIRST.values, id=FIRST.id, marks=pytest.mark.exhaustive), *OTHERS])
def test_four_times_the_bytes_are_four_times_the_steps_at_most(by: Any) -> None:
    """Steps are calls of functions, in Python and in C: a number that is the same on every machine."""
    for (name, on), (_, larger) in zip(dearest(SIZE // 4, by), dearest(SIZE, by), strict=True):
        answered(larger, by)  # patterns are made once for a process
        assert _steps(larger, by) <= 4.5 * _steps(on, by) + 2000, name


@pytest.mark.parametrize("by", RULES)
def test_a_pod_of_few_words_takes_few_steps_whatever_they_make(by: Any) -> None:
    for name, on in makers(SIZE):
        assert _steps(on, by) <= 100_000, name


def _steps(on: dict[str, Any], by: Any) -> int:
    body = json.dumps(call(on)).encode()
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        review(body, by)
    except BadCall:
        pass
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", RULES)
def test_no_pod_of_a_hundred_kib_takes_a_fraction_of_a_second(by: Any) -> None:
    """A pattern is one step, however long it looks: what it looks at again and again would take ten times as long."""
    for name, on in dearest(8 * SIZE, by):
        body = json.dumps(call(on)).encode()
        assert any(_cpu_seconds(body, by) < 0.15 for _ in range(3)), name


@pytest.mark.parametrize("by", RULES)
def test_images_that_were_never_seen_take_no_fraction_of_a_second_either(by: Any) -> None:
    seconds: dict[str, list[float]] = {}
    for first in (10_000, 20_000, 30_000):
        for name, on in images_of_steps(8 * SIZE, first=first):
            seconds.setdefault(name, []).append(_cpu_seconds(json.dumps(call(on)).encode(), by))
    assert all(min(times) < 0.15 for times in seconds.values()), seconds


def _cpu_seconds(body: bytes, by: Any) -> float:
    began = time.process_time()
    with suppress(BadCall):
        review(body, by)
    return time.process_time() - began


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", RULES)
def test_a_review_takes_at_most_twenty_times_its_body_in_memory(by: Any) -> None:
    for number, (name, on) in enumerate(dearest(4 * SIZE, by)):
        called = debugged(on) if number % 4 == 0 else call(on)
        body = json.dumps(called, separators=(",", ":")).encode()
        assert _peak(body, by) <= 20 * len(body) + 768 * 1024, name


def _peak(body: bytes, by: Any) -> int:
    """Measure the memory of a review in bytes, in which the body itself is not."""
    tracemalloc.start()
    try:
        review(body, by)
    except BadCall:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", RULES)
def test_a_review_of_the_largest_body_in_wide_characters_takes_a_fraction_of_the_containers_memory(by: Any) -> None:
    for name, on in widest(MAX_BODY_BYTES - 6 * SIZE):
        body = json.dumps(call(on), ensure_ascii=False).encode()
        assert len(body) > 0.95 * MAX_BODY_BYTES
        assert _peak(body, by) <= 80 << 20, name


@pytest.mark.parametrize(
    "fields",
    [
        {"volumeMounts": [{"name": "v", "mountPath": "/" * 4097}]},
        {"volumeDevices": [{"name": "v", "devicePath": "/" * 4097}]},
        {"terminationMessagePath": "/" * 4097},
        {"securityContext": {"capabilities": {"add": ["x" * 257]}}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_linux_would_never_take_is_denied_with_its_place(fields: dict[str, Any]) -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    body = json.dumps(call(pod("0.2", container(**fields), volumes=volumes))).encode()
    told = json.loads(review(body, policies()).body)["response"]
    assert not told["allowed"]
    assert told["status"]["message"].startswith("A path or name in the pod has more than ")
    assert f"(spec.containers[0].{next(iter(fields))}" in told["status"]["message"]
    told = json.loads(review(body, policies("mode: warn")).body)["response"]
    assert told["allowed"]
    assert "A path or name in the pod has more than " in told["warnings"][0]


def test_a_path_of_the_node_that_linux_would_never_take_is_denied_with_its_place() -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/" * 4097}}]
    body = json.dumps(call(pod("0.2", volumes=volumes))).encode()
    assert (
        "(spec.volumes[0].hostPath.path)" in json.loads(review(body, policies()).body)["response"]["status"]["message"]
    )


def test_warnings_beyond_what_the_api_server_shows_are_counted() -> None:
    many = [container(f"c{number}", envFrom=[{}]) for number in range(MOST_SHARES)]
    on = pod(None, *many, annotations={f"container.gpu-share.dev/c{number}": "0.01" for number in range(MOST_SHARES)})
    by = policies("strategy: time-slicing\nenvironment: {envFrom: allow}", "vgpusPerGpu: 100")
    warnings = answered(on, by)["warnings"]
    assert warnings[-1].endswith("more warnings, which gpu-share preview shows")
    assert len(warnings) > 10


def test_a_review_of_more_than_any_real_pod_is_denied_before_it_is_decoded() -> None:
    response = answered(pod("0.2", tolerations=[{}] * 200_000), policies())
    assert not response["allowed"]
    assert "commas" in response["status"]["message"]
    assert response["status"]["reason"] == "PodTooLarge"


@pytest.mark.parametrize("many", [{"args": [""] * 200_000}, {"args": ['\\"'] * 140_000}])
def test_a_review_that_is_not_decoded_takes_no_more_memory_than_others(many: dict[str, Any]) -> None:
    body = json.dumps(call(pod("0.2", container(**many))), separators=(",", ":")).encode()
    assert _peak(body, policies()) <= 20 * len(body)


@pytest.mark.parametrize("text", ["PYTORCH_CUDA_ALLOC_CONF=a:1 " + "-g " * 50_000, "${A}" * 2000])
def test_a_long_text_that_env_splits_into_words_takes_no_more_memory_than_others(text: str) -> None:
    on = container(command=["env", "-S", text], env=[{"name": "A", "value": "a" * 30_000}])
    body = json.dumps(call(pod("0.2", on)), separators=(",", ":")).encode()
    assert _peak(body, policies()) <= 20 * len(body)


@pytest.mark.parametrize("rules", [{"default": "mode: warn"}, {"cluster": "exemptNamespaces: [team]"}])
def test_where_nothing_is_denied_it_is_admitted_undecoded(rules: dict[str, str]) -> None:
    response = answered(pod("0.2", tolerations=[{}] * 200_000), policies(**rules))
    assert response["allowed"]
    assert "patch" not in response
    warnings = " ".join(response.get("warnings", ()))
    assert ("commas" in warnings) == ("default" in rules)
