"""Which pods `gpu-share doctor` believes on the version of NVIDIA's container toolkit: any tenant may have a label."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.console.objects import toolkit
from tests.console.stand_in import Object
from tests.console.test_doctor import installed

Judged = Callable[..., Any]
_OLD = ["gpu-a: 1.16.2, 1.17.8 or newer is expected"]


@pytest.fixture
def judged(shown: Callable[..., Any]) -> Judged:
    """Judge the toolkit by these pods."""

    def judge(*pods: Object) -> Any:
        known = installed()
        known.lists["/api/v1/pods"] = list(pods)
        (found,) = (one for one in shown(known, "doctor") if one["check"] == "toolkit-version")
        return found

    return judge


def bare(tag: str) -> Object:
    """A pod with the label that nothing has made."""
    made = toolkit(tag, "innocent")
    del made["metadata"]["ownerReferences"]
    return made


def test_an_old_toolkit_is_known_by_the_image_of_the_gpu_operator(judged: Judged) -> None:
    assert judged(toolkit("v1.16.2-ubi8"))["found"] == _OLD


@pytest.mark.parametrize("newer", [bare("v99.0.0"), toolkit("v99.0.0", "mine")])
def test_a_pod_of_a_tenant_makes_no_old_toolkit_new(judged: Judged, newer: Object) -> None:
    old = toolkit("v1.16.2-ubi8")
    assert judged(old, newer)["found"] == judged(newer, old)["found"] == _OLD


def test_a_pod_that_no_daemon_set_has_made_tells_no_version(judged: Judged) -> None:
    assert judged(bare("v99.0.0"))["status"] == "unknown"
    assert judged(bare("v1.16.2"), toolkit("v1.18.0"))["status"] == "ok"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Pending"])
def test_a_pod_that_does_not_run_tells_no_version(judged: Judged, phase: str) -> None:
    assert judged(toolkit("v1.18.0"), toolkit("v1.16.2", "before", phase=phase))["status"] == "ok"
    assert judged(toolkit("v1.18.0", phase=phase))["status"] == "unknown"


def test_a_pod_that_is_not_ready_tells_no_version(judged: Judged) -> None:
    assert judged(toolkit("v1.18.0", ready=False))["status"] == "unknown"
    assert judged(toolkit("v1.18.0", ready=False), toolkit("v1.16.2-ubi8", "before"))["found"] == _OLD


def test_a_pod_that_a_daemon_set_owns_and_does_not_control_tells_no_version(judged: Judged) -> None:
    owned = toolkit("v1.18.0")
    del owned["metadata"]["ownerReferences"][0]["controller"]
    assert judged(owned)["status"] == "unknown"


def test_of_two_versions_the_older_number_counts_and_not_the_smaller_text(judged: Judged) -> None:
    assert judged(toolkit("v1.9.0"), toolkit("v1.18.0", "next"))["found"][0].startswith("gpu-a: 1.9.0")
