"""`gpu-share doctor` of one version in a cluster of another: what it cannot know is not wrong."""

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
            "    _cluster.yaml:1: mps.later: unknown field: known are pipeDirectory",
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


def test_a_webhook_that_is_newer_than_the_nodes_may_read_a_file(asked: Asked) -> None:
    known = newer()
    tell(known, state(gpu(), gpu(index=1)))
    labels = next(
        labels
        for one in known.lists["/api/v1/namespaces/gpu-share/pods"]
        if (labels := one["metadata"]["labels"])["app.kubernetes.io/component"] == "webhook"
    )
    labels["app.kubernetes.io/version"] = "9.0.0"
    assert "? policy files are valid" in asked(known, "doctor").stdout
