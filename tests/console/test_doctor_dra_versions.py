"""`gpu-share doctor` finds the slices of other DRA drivers in whatever version the API server serves."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.console.stand_in import StandIn, status_of
from tests.console.test_doctor import installed

Shown = Callable[..., Any]
_VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
_FOUND = "gpu-a has devices of the DRA driver gpu.nvidia.com too"


def serving(version: str) -> StandIn:
    """A cluster with a slice of NVIDIA's driver, of which only one version can be read; none of the empty one."""
    known = installed()
    for one in _VERSIONS:
        path = f"/apis/resource.k8s.io/{one}/resourceslices"
        if one == version:
            device = {"name": "gpu-0", "basic": {}} if one in ("v1beta1", "v1alpha3") else {"name": "gpu-0"}
            pool = {"name": "gpu-a", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "gpu.nvidia.com", "nodeName": "gpu-a", "pool": pool, "devices": [device]}
            known.lists[path] = [{"metadata": {"name": "gpu-a-gpu.nvidia.com"}, "spec": spec}]
        else:
            known.raw[path] = (404, b"404 page not found\n")
    return known


def others(shown: Shown, on: StandIn) -> Any:
    return {one["check"]: one for one in shown(on, "doctor")}["other-plugins"]


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_slice_of_nvidias_driver_is_found_in_each_version(shown: Shown, version: str) -> None:
    found = others(shown, serving(version))
    assert (found["status"], found["found"]) == ("warning", [_FOUND])


def test_where_no_version_is_served_there_is_none(shown: Shown) -> None:
    on = serving("")
    assert others(shown, on)["status"] == "ok"
    assert [one for one in on.asked if "resourceslices" in one] == [
        f"/apis/resource.k8s.io/{one}/resourceslices" for one in _VERSIONS
    ]


def test_an_older_version_that_may_not_be_read_is_not_taken_for_none(shown: Shown) -> None:
    on = serving("v1beta1")
    on.raw["/apis/resource.k8s.io/v1beta1/resourceslices"] = status_of(403, "resourceslices is forbidden")
    found = others(shown, on)
    assert (found["status"], found["right"]) == ("unknown", "list resourceslices")
