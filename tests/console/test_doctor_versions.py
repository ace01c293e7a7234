"""`gpu-share doctor` of one version in a cluster of another: what it cannot know is not wrong."""

import json
from collections.abc import Callable

import msgspec
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
