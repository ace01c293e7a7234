"""What can be done to a pod with a share while it runs."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.api import Answer
from tests.cluster.cluster import eventually
from tests.cluster.installation import SIMULATED, Installation
from tests.cluster.pods import BUSYBOX, Place, Report, container, pod

POLICY = "ValidatingAdmissionPolicy 'gpu-share-changes'"


@pytest.fixture(scope="module")
def running(first: Installation) -> Iterator[Place]:
    """Give a place with a pod that runs. One serves all of them, since what is denied leaves it as it is."""
    first.use(SIMULATED)
    place = Place.make(first.cluster)
    place.started(pod("0.2"))
    yield place
    place.remove()


def debug(place: Place, **fields: object) -> Answer:
    """Add a debugging container, as kubectl debug does."""
    one = container("debugger", BUSYBOX, **fields)
    return place.cluster.api.ask(
        "PATCH", f"{place.path}/model/ephemeralcontainers", {"spec": {"ephemeralContainers": [one]}}
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("annotations", {"gpu-share": "0.9"}),
        ("annotations", {"gpu-share": None}),
        ("annotations", {"container.gpu-share.dev/main": "0.9"}),
        ("annotations", {"gpu-share.dev/grant": "{}"}),
        ("labels", {"gpu-share.dev/shared": "false"}),
        ("labels", {"gpu-share.dev/shared": None}),
    ],
)
def test_the_share_of_a_pod_cannot_be_changed_while_it_exists(
    running: Place, field: str, value: dict[str, str | None]
) -> None:
    denied = running.cluster.api.ask("PATCH", f"{running.path}/model", {"metadata": {field: value}})
    assert not denied.ok
    assert POLICY in denied.message


def test_other_labels_can_be_changed(running: Place) -> None:
    changed = running.cluster.api.ask("PATCH", f"{running.path}/model", {"metadata": {"labels": {"mine": "1"}}})
    assert changed.ok, changed.message


@pytest.mark.parametrize(
    "fields",
    [
        {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
        {"env": [{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/tmp/nvidia-mps"}]},
        {"securityContext": {"privileged": True}},
        {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    ],
    ids=["all GPUs", "an MPS server", "privileged", "SYS_ADMIN"],
)
def test_a_debugging_container_that_reaches_for_a_gpu_is_denied(running: Place, fields: dict[str, object]) -> None:
    denied = debug(running, **fields)
    assert denied.status == 403
    assert 'admission webhook "ephemeral-containers.gpu-share.dev" denied the request' in denied.message


def test_a_debugging_container_sees_no_gpu_although_its_image_asks_for_all(running: Place) -> None:
    answer = debug(running)
    assert answer.ok, answer.message
    path = f"{running.path}/model/log"
    line = eventually(lambda: first_line(running.cluster.api.ask("GET", path, container="debugger")), what="a report")
    assert Report(**json.loads(line)).environment["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_debugging_container_cannot_mount_the_mps_volume(running: Place) -> None:
    assert not debug(running, volumeMounts=[{"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps"}]).ok


def first_line(answer: Answer) -> str:
    return next(iter(str(answer.body).splitlines()), "") if answer.ok else ""
