"""Strategy partition, with resources of other makers as extended resources of a node that has no device."""

import json
from collections.abc import Iterator, Mapping

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import eventually
from tests.cluster.image import ROOT
from tests.cluster.installation import SIMULATED, Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.webhooks import decisions, ending

PARTITIONS = """
partitions:
  h100: [{share: "0.125", resource: nvidia.com/mig-1g.10gb}, {share: "0.25", resource: nvidia.com/mig-2g.20gb}]
  mi300x: [{share: "0.125", resource: amd.com/cpx_nps4}, {share: "1", resource: amd.com/gpu}]
  gaudi: [{share: "1", resource: habana.ai/gaudi}]
"""
NONE = "partitions: {}\n"

RESOURCES = {
    "nvidia.com/mig-1g.10gb": "2",
    "nvidia.com/mig-2g.20gb": "1",
    "amd.com/cpx_nps4": "8",
    "amd.com/gpu": "2",
    "habana.ai/gaudi": "1",
}
POLICIES = {
    name: f"strategy: partition\npartition: {name}\nshare: {{maximum: '2', podMaximum: '2'}}\n"
    for name in ("h100", "mi300x", "gaudi")
}


@pytest.fixture(scope="module")
def partitioned(first: Installation) -> Iterator[Installation]:
    """Install partitions and namespaces that use them, on nodes that say they have some."""
    shipped = (ROOT / "policies" / "files" / "_cluster.yaml").read_text()
    assert shipped.count(NONE) == 1
    first.write_policies(_cluster=shipped.replace(NONE, PARTITIONS), **POLICIES)
    first.apply(SIMULATED)
    first.wait_until_ready()
    first.hurry("webhook")
    eventually(lambda: decisions(first.cluster, pod("0.5"), "h100") == {False}, what="each webhook knows the policies")
    eventually(lambda: not ending(first.cluster), what="no webhook of before answers any more")
    advertise(first, RESOURCES)
    yield first
    advertise(first, dict.fromkeys(RESOURCES))
    first.write_policies(_cluster=shipped, **dict.fromkeys(POLICIES))
    first.apply(SIMULATED)
    first.wait_until_ready()


@pytest.fixture
def place_of(partitioned: Installation, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place.make(partitioned.cluster, request.param)
    yield made
    made.remove()


def advertise(installation: Installation, resources: Mapping[str, str | None]) -> None:
    body = [
        {
            "op": "remove" if count is None else "add",
            "path": f"/status/{field}/{name.replace('/', '~1')}",
            "value": count,
        }
        for field in ("capacity", "allocatable")
        for name, count in resources.items()
    ]
    node = installation.nodes()[0]
    patch = json.dumps([{key: value for key, value in one.items() if value is not None} for one in body])
    installation.cluster.run(
        f"kubectl patch node {node} --subresource=status --type=json --patch-file=/dev/stdin", stdin=patch
    )


def limits_of(made: Object) -> dict[str, dict[str, str]]:
    return {one["name"]: one["resources"].get("limits", {}) for one in made["spec"]["containers"]}


@pytest.mark.parametrize(
    ("place_of", "share", "limits", "hidden"),
    [
        ("h100", "0.2", {"nvidia.com/mig-2g.20gb": "1"}, {"NVIDIA_VISIBLE_DEVICES": "void"}),
        (
            "mi300x",
            "0.1",
            {"amd.com/cpx_nps4": "1"},
            {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none"},
        ),
        ("mi300x", "2", {"amd.com/gpu": "2"}, {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none"}),
        (
            "gaudi",
            "0.5",
            {"habana.ai/gaudi": "1"},
            {"NVIDIA_VISIBLE_DEVICES": "void", "HABANA_VISIBLE_DEVICES": "none"},
        ),
    ],
    indirect=["place_of"],
)
def test_a_share_runs_on_a_partition_and_nothing_of_mps_comes_with_it(
    place_of: Place, share: str, limits: dict[str, str], hidden: dict[str, str]
) -> None:
    made = place_of.started(pod(share, container(), container("beside")))
    assert limits_of(made) == {"main": limits, "beside": {}}
    assert "hostIPC" not in made["spec"]
    beside = place_of.report("model", "beside").environment
    assert {name: beside.get(name) for name in hidden} == hidden
    main = place_of.report("model", "main").environment
    assert not [name for name in main if name.startswith(("CUDA_MPS", "GPU_SHARE_"))]


@pytest.mark.parametrize("place_of", ["h100"], indirect=True)
def test_the_scheduler_counts_partitions(place_of: Place) -> None:
    place_of.started(pod("0.2"))
    assert place_of.create(pod("0.2", name="second")).ok
    eventually(
        lambda: [one for one in place_of.events("FailedScheduling", "Pod") if "nvidia.com/mig-2g.20gb" in one],
        what="the second pod waits for the one partition of its size",
    )


@pytest.mark.parametrize("place_of", ["h100"], indirect=True)
def test_a_share_that_no_partition_holds_is_denied_with_the_choices(place_of: Place) -> None:
    answer = place_of.create(pod("0.5"))
    assert not answer.ok
    assert 'Ask for "0.125" or "0.25"' in answer.message


@pytest.mark.parametrize("place_of", ["h100"], indirect=True)
def test_a_grant_of_partitions_that_the_webhook_did_not_write_is_denied(place_of: Place) -> None:
    grant = (
        '{"policy":"h100","strategy":"partition","partition":"h100","containers":'
        '{"main":{"resource":"nvidia.com/mig-1g.10gb","count":1,"share":"1"}}}'
    )
    on = pod(None, container(resources={"limits": {"nvidia.com/mig-1g.10gb": "1"}}))
    assert place_of.create(on, dry_run=True).ok  # the maker's business, as before
    on["metadata"]["annotations"]["gpu-share.dev/grant"] = grant
    on["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    answer = place_of.create(on, dry_run=True)
    assert "asks for no share" in answer.message


@pytest.mark.parametrize("place_of", ["mi300x"], indirect=True)
def test_an_ephemeral_container_sees_no_device(place_of: Place) -> None:
    made = place_of.started(pod("0.1"))
    made["spec"]["ephemeralContainers"] = [container("debug", stdin=True)]
    path = f"{place_of.path}/model/ephemeralcontainers"
    answer = place_of.cluster.api.ask("PUT", path, made)
    assert answer.ok, answer.message
    (debug,) = place_of.get("model")["spec"]["ephemeralContainers"]
    assert {one["name"]: one["value"] for one in debug["env"]}["AMD_VISIBLE_DEVICES"] == "none"
