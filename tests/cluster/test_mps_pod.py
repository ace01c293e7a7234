"""The pod of `gpu-share mps` on a real node: without a GPU it serves nobody, but what it mounts is there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import eventually
from tests.cluster.image import NAME
from tests.cluster.installation import Installation
from tests.cluster.node import Node, shared_pipes
from tests.cluster.pods import Place, pod

# What `plugin.usage.measurement` finds out of each process that NVML names.
_WHOSE = """
import json
from pathlib import Path
from plugin.usage.cgroups import container_of
from plugin.usage.containers import containers

known, of_node, found = containers(Path("/var/log/containers")), 0, set()
for path in Path("/proc").glob("[0-9]*"):
    try:
        container = container_of(int(path.name))
    except OSError:
        continue
    of_node += container is None
    if container and (one := known.find(container)):
        found.add(f"{one.namespace}/{one.pod}/{one.container}")
print(json.dumps({"of_node": of_node, "found": sorted(found)}))
"""

# As the program does, which finds no GPU here.
_OFFERED = """
from pathlib import Path
from plugin.mps.mount_sources import mount_sources, offer, withdraw_all
from plugin.mps.pipe_directories import prepare
pipes, given = Path("/tmp/nvidia-mps"), mount_sources(Path("/run/gpu-share"))
"""
_OFFER = _OFFERED + '(prepare(pipes, "GPU-a") / "control").touch(); print(offer(given, pipes, "GPU-a"))'
_WITHDRAW = _OFFERED + "withdraw_all(given)"


@pytest.fixture
def mps(installed: Installation) -> Iterator[str]:
    """Install what belongs to `gpu-share mps`, with a program that waits in its place, and give its pod."""
    rendered = yaml.safe_load_all(installed.run("kubectl kustomize manifests/base"))
    objects = [one for one in rendered if _component(one) == "mps"]
    assert sorted(one["kind"] for one in objects) == ["DaemonSet", "NetworkPolicy", "ServiceAccount"]
    for one in objects:
        if one["kind"] == "DaemonSet":
            (part,) = one["spec"]["template"]["spec"]["containers"]
            part |= {"image": NAME, "command": ["sleep", "infinity"]}
            one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    text = yaml.safe_dump_all(objects)
    with shared_pipes():
        installed.cluster.run("kubectl apply -f -", stdin=text)
        try:
            yield eventually(lambda: next(map(_running, installed.pods("mps")), ""), what="the pod runs")
        finally:
            installed.cluster.run("kubectl delete -f -", stdin=text)
            eventually(lambda: not installed.pods("mps"), what="the pod has gone")


def _running(one: dict[str, Any]) -> str:
    """Give the name of a pod; nothing before it runs."""
    return str(one["metadata"]["name"]) if one["status"]["phase"] == "Running" else ""


def _component(one: dict[str, Any]) -> str:
    return str(one["metadata"].get("labels", {}).get("app.kubernetes.io/component"))


def test_it_sees_in_which_container_every_process_of_the_node_is(
    installed: Installation, place: Place, mps: str
) -> None:
    place.started(pod("0.2"))
    said = json.loads(installed.cluster.run(f"kubectl -n gpu-share exec -i {mps} -- python3 -", stdin=_WHOSE))
    assert f"{place.name}/model/main" in said["found"]
    assert f"gpu-share/{mps}/mps" in said["found"]
    assert said["of_node"] > 0


def test_what_it_mounts_for_containers_shows_on_the_node(installed: Installation, mps: str) -> None:
    def run(program: str) -> str:
        return installed.cluster.run(f"kubectl -n gpu-share exec -i {mps} -- python3 -", stdin=program)

    assert run(_OFFER) == "\n"
    # By a pod of its own: one that started before has the mounts of then.
    with Node.reached(installed.cluster, name="node-now") as node:
        assert node.run("ls /host/run/gpu-share/pipes/GPU-a") == "control\n"
    run(_WITHDRAW)
