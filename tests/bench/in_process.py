"""Microseconds per review without a server, as a ratio to the way that comes to mind first."""

import copy
import json
import statistics
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonpatch

from policies.reading.directory import MOST_FILES
from policies.reading.store import load
from tests.bench.pods import SIZES, review_of
from webhook.review import review


def measure(policies: Path) -> Iterator[str]:
    """Compare review for review in turn, so that a machine that slows down slows both."""
    loaded = load(policies)
    for name, size in SIZES.items():
        body = review_of(size)
        ours, naive = _in_turn(lambda body=body: review(body, loaded), lambda body=body: _naive(body))  # type: ignore[misc] # bound at once
        yield f"review, {name:8} {len(body):6} bytes: {ours:7.1f} us, naive {naive:8.1f} us, ratio 1/{naive / ours:.0f}"


def measure_policies(directory: Path, shipped: Path) -> Iterator[str]:
    """Compare 1, 1,000 and as many namespace policies as there can be."""
    body = review_of(SIZES["typical"])
    sets = []
    for count in (1, 1000, MOST_FILES - 1):  # beside the default
        policies = directory / f"policies-{count}"
        policies.mkdir()
        (policies / "_default.yaml").write_text((shipped / "_default.yaml").read_text())
        for number in range(count):
            (policies / f"team-{number}.yaml").write_text(f'share: {{maximum: "0.{number % 9 + 1}5"}}\n')
        began = time.perf_counter()
        sets.append(load(policies))
        loading = (time.perf_counter() - began) * 1000
        yield f"{count:5} namespace policies: read in {loading:.0f} ms"
    few, many = _in_turn(lambda: review(body, sets[0]), lambda: review(body, sets[1]))
    yield f"review with 1,000 namespace policies: {many / few:.2f} x that with 1"


def _in_turn(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Median microseconds of each, over rounds taken in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(40):
        for call, kept in zip((first, second), times, strict=True):
            calls = 25
            began = time.perf_counter()
            for _ in range(calls):
                call()
            kept.append((time.perf_counter() - began) / calls * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


def _naive(body: bytes) -> bytes:
    """Read all, copy, change the copy, let jsonpatch find the difference."""
    called = json.loads(body)
    before = called["request"]["object"]
    after: dict[str, Any] = copy.deepcopy(before)
    container = after["spec"]["containers"][0]
    container["resources"]["limits"]["gpu-share.dev/vgpu"] = "2"
    container["resources"]["requests"]["gpu-share.dev/vgpu"] = "2"
    container["args"].append("--per_process_gpu_memory_fraction=0.2")
    container["volumeMounts"].append({"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps", "readOnly": True})
    after["spec"]["hostIPC"] = True
    after["spec"]["volumes"].append(
        {"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps", "type": "Directory"}}
    )
    after["metadata"]["annotations"]["gpu-share.dev/grant"] = "{}"
    patch = jsonpatch.make_patch(before, after).to_string()
    response = {"uid": called["request"]["uid"], "allowed": True, "patch": b64encode(patch.encode()).decode()}
    return json.dumps({"kind": "AdmissionReview", "response": response}).encode()
