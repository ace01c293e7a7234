"""What `gpu-share doctor` says of parts whose images have one name, and not one ID."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.console.objects import gpu, node, part, state, tell
from tests.console.stand_in import Object, StandIn
from tests.console.test_doctor import installed

Shown = Callable[..., Any]
_OLD, _NEW = (digit * 64 for digit in "ab")
_IMPORTED = "sha256:{}".format
_PULLED = "registry.example/gpu-share@sha256:{}".format
_DOCKER = "docker://sha256:{}".format
_NAME = "gpu-share:0.1.0"
_PODS = "/api/v1/namespaces/gpu-share/pods"
_CONTAINERD, _CRIO = ("containerd://2.1.4", "cri-o://1.34.0")


def running(**ids: str) -> StandIn:
    """A cluster whose parts have images of one name and these IDs, on gpu-a; those that are not named have none."""
    known = installed()
    for pod in known.lists[_PODS]:
        _image(pod, ids.get(pod["metadata"]["labels"]["app.kubernetes.io/component"], ""))
    return known


def beside(image_id: str, **info: str) -> StandIn:
    """A cluster of two nodes with a plugin each: by containerd on amd64, and as *info* says, with this ID there."""
    known = running(plugin=_IMPORTED(_NEW))
    known.lists["/api/v1/nodes"] = [
        _on("gpu-a", containerRuntimeVersion=_CONTAINERD, architecture="amd64"),
        _on("gpu-b", **{"containerRuntimeVersion": _CONTAINERD, "architecture": "amd64", **info}),
    ]
    other = state(gpu(), gpu(index=1), on="gpu-b")
    known.lists[_PODS] += [_image(part("gpu-b"), image_id), _image(part("gpu-b", "mps"), "")]
    tell(known, other)
    return known


def _on(name: str, **info: str) -> Object:
    return node(name, nodeInfo=info)


def _image(pod: Object, image_id: str) -> Object:
    for container in pod["spec"]["containers"]:
        container["image"] = _NAME
    for status in pod["status"]["containerStatuses"]:
        status["imageID"] = image_id
    return pod


def judged(shown: Shown, known: StandIn) -> Object:
    found: Object = next(one for one in shown(known, "doctor") if one["check"] == "parts-same")
    return found


@pytest.mark.parametrize("of", [_IMPORTED, _PULLED, _DOCKER])
def test_two_builds_of_one_name_are_told_with_pod_node_and_id(shown: Shown, of: Callable[[str], str]) -> None:
    found = judged(shown, running(plugin=of(_NEW), mps=of(_NEW), webhook=of(_OLD), certs=of(_OLD)))
    run = f"run {_NAME} with the ID sha256:"
    assert (found["status"], found["found"]) == (
        "warning",
        [
            f"gpu-share-certs-gpu-a on gpu-a, gpu-share-webhook-gpu-a on gpu-a {run}{_OLD[:12]}",
            f"gpu-share-mps-gpu-a on gpu-a, gpu-share-plugin-gpu-a on gpu-a {run}{_NEW[:12]}",
        ],
    )
    assert "load the image of now on the nodes of the older one first" in found["hint"]


@pytest.mark.parametrize(
    ("image_id", "info", "status"),
    [
        pytest.param(_IMPORTED(_NEW), {}, "ok", id="the same"),
        pytest.param(_IMPORTED(_OLD), {}, "warning", id="a node was forgotten"),
        pytest.param(_IMPORTED(_OLD), {"architecture": "arm64"}, "ok", id="another architecture"),
        pytest.param(_PULLED(_OLD), {}, "unknown", id="imported here and pulled there"),
        pytest.param(_OLD, {"containerRuntimeVersion": _CRIO}, "unknown", id="another runtime"),
        pytest.param(_NEW, {"containerRuntimeVersion": _CRIO}, "ok", id="the same by another runtime"),
        pytest.param(_IMPORTED(_OLD), {"architecture": ""}, "unknown", id="nobody knows the architecture"),
        pytest.param("", {}, "ok", id="not started yet"),
        pytest.param(_NAME, {}, "ok", id="an ID that is none"),
    ],
)
def test_ids_are_compared_where_they_are_of_the_same_thing(
    shown: Shown, image_id: str, info: dict[str, str], status: str
) -> None:
    assert judged(shown, beside(image_id, **info))["status"] == status


def test_ids_that_cannot_be_compared_are_told_in_careful_words(shown: Shown) -> None:
    (told,) = judged(shown, beside(_PULLED(_OLD)))["found"]
    assert told == (
        f"gpu-share-plugin-gpu-b on gpu-b have the name {_NAME}, but not the ID, of gpu-share-plugin-gpu-a on gpu-a: "
        "they may be different builds, or one that was pulled here and imported there"
    )


def test_without_the_right_to_list_nodes_it_is_said_which_right_would_tell(shown: Shown) -> None:
    known = beside(_IMPORTED(_OLD))
    known.forbidden = {"nodes"}
    found = judged(shown, known)
    assert (found["status"], found["right"]) == ("unknown", "list nodes")
    assert "they may be different builds, or builds for different architectures, or one" in found["found"][0]
