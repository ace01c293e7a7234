"""`gpu-share doctor` on a real cluster where something is wrong with nodes, or with what they need."""

import pytest

from tests.cluster.installation import Installation
from tests.cluster.test_doctor import told
from tests.cluster.test_partitions import advertise

pytestmark = pytest.mark.usefixtures("classes")

_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
_CLASS = "share-100m.gpu-share.dev"
_PLUGIN = "kubectl -n gpu-share {} daemonset/gpu-share-plugin"


def test_a_node_that_is_labelled_and_silent_is_told(installed: Installation) -> None:
    api = installed.cluster.api
    metadata = {"name": "silent", "labels": {"gpu-share.dev/node": "true"}}
    taints = [{"key": "gpu-share.test/empty", "effect": "NoSchedule"}]  # for the plugin's pods too
    assert api.ask("POST", "/api/v1/nodes", {"metadata": metadata, "spec": {"taints": taints}}).ok
    try:
        found = told("nodes-speak", "silent: no part of gpu-share runs there")
    finally:
        api.ask("DELETE", "/api/v1/nodes/silent")
    assert found["status"] == "failure"


def test_a_node_whose_gpus_another_device_plugin_has_too_is_told(installed: Installation) -> None:
    (node,) = installed.nodes()
    advertise(installed, {"nvidia.com/gpu": "2"})
    try:
        found = told("other-plugins", f"{node} advertises nvidia.com/gpu too")
    finally:
        advertise(installed, {"nvidia.com/gpu": None})
    assert found["status"] == "warning"


def test_a_size_without_its_device_class_is_told(installed: Installation) -> None:
    api = installed.cluster.api
    before = api.get(f"{_CLASSES}/{_CLASS}")
    api.ask("DELETE", f"{_CLASSES}/{_CLASS}")
    try:
        found = told("device-classes", f"there is no DeviceClass {_CLASS}")
    finally:
        api.ask("POST", _CLASSES, {"metadata": {"name": _CLASS}, "spec": before["spec"]})
    assert found["status"] == "failure"


def test_an_image_that_a_node_cannot_get_is_told(installed: Installation) -> None:
    installed.run(f"{_PLUGIN.format('set image')} plugin=registry.example.com/gpu-share:none")
    try:
        found = told("images", "registry.example.com/gpu-share:none")
    finally:
        installed.run(_PLUGIN.format("rollout undo"))
        installed.run(_PLUGIN.format("rollout status"))
        installed.wait_until_ready()
    assert found["status"] == "failure"
