"""`gpu-share doctor` of one version in a cluster of another: what it cannot know is not wrong."""

import copy
import json
from collections.abc import Callable

import msgspec
import pytest
from click.testing import Result

from tests.console.objects import PROGRAM, gpu, state, tell
from tests.console.stand_in import StandIn
from tests.console.test_doctor import installed

Asked = Callable[..., Result]
_CONFIG_MAPS = "/api/v1/namespaces/gpu-share/configmaps"
_CLUSTER_FILE = "ConfigMap gpu-share/gpu-share-cluster/_cluster.yaml"


def newer() -> StandIn:
    """A cluster whose `_cluster.yaml` has a field of a later version, which its node runs."""
    known = installed()
    known.lists[_CONFIG_MAPS][1]["data"]["_cluster.yaml"] = "mps: {later: true}\n"
    tell(known, msgspec.structs.replace(state(gpu(), gpu(index=1)), program="9.0.0"))
    return known


def test_a_cluster_of_a_newer_version_is_not_called_broken(asked: Asked) -> None:
    ran = asked(newer(), "doctor")
    begin = ran.stdout.index("? policy files are valid")
    assert (ran.exit_code, ran.stdout[begin:].splitlines()[1:4]) == (
        0,
        [
            f"    {_CLUSTER_FILE}:1: mps.later: unknown field: known are pipeDirectory",
            f"    gpu-a runs gpu-share 9.0.0, and this is {PROGRAM}",
            "    hint: use the gpu-share of the cluster's version",
        ],
    )


def test_in_a_cluster_of_its_own_version_an_unknown_field_is_wrong(asked: Asked) -> None:
    known = newer()
    tell(known, state(gpu(), gpu(index=1)))
    ran = asked(known, "doctor")
    assert (ran.exit_code, "✗ policy files are valid" in ran.stdout) == (1, True)


def test_a_node_that_speaks_as_a_newer_version_does_is_not_wrong(asked: Asked) -> None:
    known = newer()
    later = json.dumps({"version": 2, "gpus": "something else by then"}).encode()
    known.states["gpu-share-plugin-gpu-a:9407"] = lambda: (200, later)
    found = {one["check"]: one for one in json.loads(asked(known, "doctor", "-o", "json").stdout)}
    assert {one["status"] for one in found.values()} <= {"ok", "unknown", "not-applicable"}
    assert "use the gpu-share of the node's version" in found["nodes-speak"]["found"][0]
    assert f"gpu-a runs a newer gpu-share, and this is {PROGRAM}" in found["policies-valid"]["found"]


@pytest.mark.parametrize(
    ("text", "program", "status"),
    [
        ("mps: {later: true}\n", "9.0.0", "unknown"),
        ("nodes: [{node: a, offer: later}]\n", "9.0.0", "unknown"),  # a word of which a later version may have more
        ("nodes: [{node: a, offer: true}]\n", "9.0.0", "failure"),  # of another type
        ("nodes: [{node: a, offer: [mps, later]}]\n", "9.0.0", "failure"),
        ("mps: {later: true}\n", "0.0.9", "failure"),
        ("vgpusPerGpu: many\n", "9.0.0", "failure"),
        ("mps: [\n", "9.0.0", "failure"),
        ("mps: {later: true}\nvgpusPerGpu: many\n", "9.0.0", "failure"),
    ],
)
def test_a_file_is_unknown_only_where_a_newer_version_may_read_it(
    asked: Asked, text: str, program: str, status: str
) -> None:
    known = newer()
    known.lists[_CONFIG_MAPS][1]["data"]["_cluster.yaml"] = text
    tell(known, msgspec.structs.replace(state(gpu(), gpu(index=1)), program=program))
    found = {one["check"]: one for one in json.loads(asked(known, "doctor", "-o", "json").stdout)}
    assert found["policies-valid"]["status"] == status
    assert ("there are no valid policies" in str(found)) is (status == "failure")


def with_webhook(version: str, **status: str) -> StandIn:
    """A cluster with one more pod of the webhook, which has the label *version*; its nodes run this one."""
    known = newer()
    tell(known, state(gpu(), gpu(index=1)))
    pods = known.lists["/api/v1/namespaces/gpu-share/pods"]
    of_webhook = (one for one in pods if one["metadata"]["labels"]["app.kubernetes.io/component"] == "webhook")
    other = copy.deepcopy(next(of_webhook))
    other["metadata"] |= {"name": "gpu-share-webhook-other", "uid": "other"}
    other["metadata"]["labels"]["app.kubernetes.io/version"] = version
    other["status"] |= status
    pods.append(other)
    return known


@pytest.mark.parametrize("version", ["9.0.0", "v9.0.0", "9.0.0-rc.1", PROGRAM + ".dev1"])
def test_a_webhook_that_is_newer_than_the_nodes_may_read_a_file(asked: Asked, version: str) -> None:
    assert "? policy files are valid" in asked(with_webhook(version), "doctor").stdout


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Terminating"])
def test_a_webhook_pod_that_has_ended_runs_no_newer_version(asked: Asked, phase: str) -> None:
    known = with_webhook("9.0.0", phase=phase, reason="Evicted")
    if phase == "Terminating":
        last = known.lists["/api/v1/namespaces/gpu-share/pods"][-1]
        last["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        last["status"]["phase"] = "Running"
    ran = asked(known, "doctor")
    assert (ran.exit_code, "✗ policy files are valid" in ran.stdout) == (1, True)


@pytest.mark.parametrize("version", ["v0.0.9", "2024.11", "latest", "v" + PROGRAM])
def test_a_webhook_whose_label_is_no_newer_release_makes_no_file_unknown(asked: Asked, version: str) -> None:
    ran = asked(with_webhook(version), "doctor")
    assert (ran.exit_code, "✗ policy files are valid" in ran.stdout) == (1, True)
