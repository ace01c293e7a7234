"""One configuration of NVIDIA's device plugin, as policies: what becomes of each of its keys."""

import msgspec
import pytest
import yaml

from policies.grant import Denied, Grant
from policies.migration.report import as_json, as_text, commands, files, kustomization
from tests.policies.migration.configurations import (
    MPS,
    TIME_SLICED,
    UNSHARED,
    config_map,
    imported,
    in_force,
    outcomes,
)
from tests.policies.pods import decided, limited, pod

# From the documentation of NVIDIA's device plugin and GPU Operator.
DOCUMENTED = """\
version: v1
flags:
  migStrategy: "none"
  failOnInitError: true
  nvidiaDriverRoot: "/"
  plugin:
    passDeviceSpecs: false
    deviceListStrategy: "envvar"
    deviceIDStrategy: "uuid"
  gfd: {oneshot: false, noTimestamp: false, sleepInterval: 60s, outputFile: /etc/x, machineTypeFile: /sys/y}
resources:
  gpus:
  - {pattern: "*", name: nvidia.com/gpu}
sharing:
  timeSlicing:
    renameByDefault: false
    failRequestsGreaterThanOne: true
    resources:
    - {name: gpu, replicas: 10}
imex: {channelIDs: [0], required: false}
"""


def test_time_slicing_becomes_vgpus_that_are_time_sliced() -> None:
    made = imported(TIME_SLICED)
    assert yaml.safe_load(files(made)["_cluster.yaml"]) == {
        "vgpusPerGpu": 4,
        "handover": ["envvar"],
        "nodes": [{"node": "*", "offer": "time-slicing"}],
    }
    policies = in_force(made)
    assert policies.of("team").policy.strategy == "time-slicing"
    assert policies.cluster.strategy(node="any", model="NVIDIA H200", index=3, otherwise="mps") == "time-slicing"


def test_mps_becomes_vgpus_under_mps_with_nothing_attached_in_the_pod() -> None:
    policies = in_force(imported(MPS))
    assert policies.cluster.vgpus_per_gpu == 10
    assert policies.cluster.nodes == ()
    policy = policies.of("team").policy
    assert (policy.strategy, policy.mps.attach) == ("mps", "node")


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [(strategy, number) for strategy in ("mps", "timeSlicing") for number in (2, 3, 7, 10, 48, 60)]
    + [("timeSlicing", 99), ("timeSlicing", 100)],
)
def test_a_pod_that_asked_for_one_replica_gets_as_much_by_its_share(replicas: int, strategy: str) -> None:
    made = imported({"sharing": {strategy: {"resources": [{"name": "nvidia.com/gpu", "replicas": replicas}]}}})
    share = as_json(made)["configurations"][0]["share"]
    grant = decided(pod(share), in_force(made))
    assert isinstance(grant, Grant)
    assert grant.containers[0].vgpus == 1
    assert grant.vgpus_per_gpu == replicas


@pytest.mark.parametrize(
    ("strategy", "written", "holds_one"),
    [
        ("mps", {}, True),
        ("mps", {"failRequestsGreaterThanOne": None}, True),
        ("mps", {"failRequestsGreaterThanOne": False}, False),
        ("timeSlicing", {}, False),
        ("timeSlicing", {"failRequestsGreaterThanOne": True}, True),
    ],
)
def test_a_container_may_have_more_than_one_replica_where_it_could(
    strategy: str,
    written: dict[str, bool],
    holds_one: bool,  # noqa: FBT001 - what is expected
) -> None:
    made = imported({"sharing": {strategy: written | {"resources": [{"name": "gpu", "replicas": 10}]}}})
    assert isinstance(decided(pod("0.1"), in_force(made)), Grant)
    assert isinstance(decided(pod("0.2"), in_force(made)), Denied if holds_one else Grant)


@pytest.mark.parametrize(
    ("written", "holds_one"), [("yes", True), ("On", True), ("Y", True), ("no", False), ("OFF", False), ("n", False)]
)
def test_booleans_are_read_as_the_plugin_reads_them(written: str, *, holds_one: bool) -> None:
    section = f"{{failRequestsGreaterThanOne: {written}, resources: [{{name: nvidia.com/gpu, replicas: 10}}]}}"
    made = imported(f"flags: {{failOnInitError: {written}}}\nsharing: {{timeSlicing: {section}}}\n")
    assert isinstance(decided(pod("0.2"), in_force(made)), Denied if holds_one else Grant)
    assert made.options.get("GPU_SHARE_WAIT_FOR_GPUS") == (None if holds_one else "true")


@pytest.mark.parametrize("replicas", range(2, 61))
def test_one_vgpu_by_limit_is_one_replica_too_and_two_are_too_many(replicas: int) -> None:
    policies = in_force(imported(MPS.replace("10", str(replicas))))
    assert isinstance(decided(pod(None, limited(quantity=1)), policies), Grant)
    assert isinstance(decided(pod(None, limited(quantity=2)), policies), Denied)


def test_every_key_of_a_documented_configuration_is_accounted_for() -> None:
    assert outcomes(imported(DOCUMENTED)) == {
        "version": "always",
        "flags.migStrategy": "always",
        "flags.failOnInitError": "always",
        "flags.nvidiaDriverRoot": "always",
        "flags.plugin.passDeviceSpecs": "always",
        "flags.plugin.deviceListStrategy": "same",
        "flags.plugin.deviceIDStrategy": "always",
        "flags.plugin.sharedDevicesAllocationPolicy": "none",
        "flags.gfd.oneshot": "none",
        "flags.gfd.noTimestamp": "none",
        "flags.gfd.sleepInterval": "none",
        "flags.gfd.outputFile": "none",
        "flags.gfd.machineTypeFile": "none",
        "resources.gpus": "ignored",
        "sharing.timeSlicing.renameByDefault": "pods",
        "sharing.timeSlicing.failRequestsGreaterThanOne": "same",
        "sharing.timeSlicing.resources[0].name": "same",
        "sharing.timeSlicing.resources[0].replicas": "same",
        "imex.channelIDs": "pods",
        "imex.required": "always",
    }


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ({}, {}),
        ({"plugin": {"deviceListStrategy": "envvar", "passDeviceSpecs": False}}, {}),
        ({"plugin": {"deviceListStrategy": "volume-mounts"}}, {}),
        ({"plugin": {"sharedDevicesAllocationPolicy": "packed"}}, {}),
        ({"plugin": {"sharedDevicesAllocationPolicy": "distributed"}}, {"GPU_SHARE_ALLOCATION_POLICY": "spread"}),
        ({"failOnInitError": False}, {"GPU_SHARE_WAIT_FOR_GPUS": "true"}),
    ],
)
def test_flags_become_options_of_the_plugin(flags: dict[str, object], options: dict[str, str]) -> None:
    made = imported({"flags": flags, **yaml.safe_load(MPS)})
    assert made.options == options
    written = yaml.safe_load(kustomization(made)) if options else None
    if written:
        patch = yaml.safe_load(written["patches"][0]["patch"])
        (container,) = patch["spec"]["template"]["spec"]["containers"]
        assert {one["name"]: one["value"] for one in container["env"]} == options


def test_the_way_that_nvidias_plugin_hands_gpus_over_by_default_is_told_where_none_is_written() -> None:
    empty = imported({"flags": {"plugin": {"deviceListStrategy": []}}, **yaml.safe_load(MPS)})
    for made in (imported(MPS), empty):
        (told,) = (one for one in made.findings if one.key == "flags.plugin.deviceListStrategy")
        assert "write handover: [cdi]" in told.told
        assert made.handover == ("envvar",)


@pytest.mark.parametrize(
    ("flags", "ways"),
    [
        ({}, ("envvar",)),
        ({"plugin": {"passDeviceSpecs": True}}, ("envvar", "devices")),
        ({"plugin": {"deviceListStrategy": "cdi-cri"}}, ("cdi",)),
        ({"plugin": {"deviceListStrategy": ["envvar", "cdi-annotations"]}}, ("cdi",)),
        ({"plugin": {"deviceListStrategy": "volume-mounts"}}, ("envvar",)),
    ],
)
def test_a_list_of_devices_becomes_the_handover_of_the_cluster(flags: dict[str, object], ways: tuple[str, ...]) -> None:
    made = imported({"flags": flags, **yaml.safe_load(MPS)})
    assert in_force(made).cluster.handover == ways


def test_where_both_are_written_mps_counts_as_for_nvidia() -> None:
    both = yaml.safe_load(MPS)["sharing"] | yaml.safe_load(TIME_SLICED)["sharing"]
    made = imported({"sharing": both})
    assert in_force(made).of("team").policy.strategy == "mps"
    assert made.vgpus_per_gpu == 10
    assert outcomes(made)["sharing.timeSlicing"] == "ignored"


def test_of_two_entries_for_one_resource_the_larger_counts_as_for_nvidia() -> None:
    resources = [{"name": "gpu", "replicas": 3}, {"name": "nvidia.com/gpu", "replicas": 8}]
    made = imported({"sharing": {"timeSlicing": {"resources": resources}}})
    assert made.vgpus_per_gpu == 8
    assert outcomes(made)["sharing.timeSlicing.resources[0].replicas"] == "ignored"


def test_mig_instances_alone_are_nothing_to_share_here() -> None:
    made = imported({"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/mig-1g.5gb", "replicas": 2}]}}})
    assert made.main is None
    assert commands(made) == []
    assert outcomes(made)["sharing.timeSlicing.resources[0].name"] == "none"
    assert list(files(made)) == ["_cluster.yaml"]


def test_a_configuration_that_shares_nothing_leaves_its_nodes_to_nvidia() -> None:
    made = imported(UNSHARED)
    assert made.questions == ()
    assert commands(made) == []


def test_the_text_is_yaml_up_to_its_comments_and_the_json_has_the_same() -> None:
    made = imported(config_map(mps=MPS, sliced=TIME_SLICED), default="mps")
    documents = [one for one in yaml.safe_load_all("\n".join(as_text(made, "config.yaml"))) if one is not None]
    told = as_json(made)
    assert documents == [yaml.safe_load(one) for one in (*told["files"].values(), *told["namespaces"].values())]
    assert msgspec.json.decode(msgspec.json.encode(told)) == told


def test_lines_are_those_of_the_file_in_a_config_map_too() -> None:
    text = config_map(a=MPS, b=TIME_SLICED)
    made = imported(text, default="a")
    lines = text.splitlines()
    replicas = [one for one in made.findings if one.key.endswith("replicas")]
    assert [lines[one.line - 1].strip() for one in replicas] == ["replicas: 10", "replicas: 4"]
