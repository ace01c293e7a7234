"""Several configurations of NVIDIA's plugin in a ConfigMap or a chart, of which nodes choose one by a label."""

import pytest

from policies.errors import PolicyError
from policies.migration.nvidia import NO_DEFAULT
from policies.migration.report import as_json, commands
from tests.policies.migration.configurations import (
    MPS,
    TIME_SLICED,
    UNSHARED,
    config_map,
    imported,
    in_force,
    outcomes,
)
from tests.policies.pods import decided, pod


def test_one_replica_of_each_configuration_is_a_whole_number_of_vgpus() -> None:
    made = imported(config_map(a=MPS, b=MPS.replace("10", "4")), default="a")
    assert made.vgpus_per_gpu == 20
    assert [(one["vgpus"], one["share"]) for one in as_json(made)["configurations"]] == [(2, "0.1"), (5, "0.25")]
    policies = in_force(made)
    assert decided(pod("0.1"), policies).containers[0].vgpus == 2  # type: ignore[union-attr]
    assert decided(pod("0.25"), policies, "b").containers[0].vgpus == 5  # type: ignore[union-attr]


def test_without_a_common_multiple_the_administrator_is_asked() -> None:
    made = imported(config_map(a=TIME_SLICED.replace("4", "7"), b=TIME_SLICED.replace("4", "16")), default="a")
    assert made.vgpus_per_gpu <= 100
    assert "no common multiple up to 100" in made.questions[0]
    assert outcomes(made)["a:sharing.timeSlicing.resources[0].replicas"] in ("decide", "same")
    assert "decide" in outcomes(made).values()


def test_under_mps_there_are_no_more_vgpus_than_clients() -> None:
    made = imported(config_map(a=MPS, b=TIME_SLICED.replace("4", "32")), default="a")
    assert made.vgpus_per_gpu <= 60
    assert "no common multiple up to 60" in made.questions[0]
    assert (
        imported(
            config_map(a=MPS.replace("mps", "timeSlicing").replace("10", "20"), b=TIME_SLICED.replace("4", "25")),
            default="a",
        ).vgpus_per_gpu
        == 100
    )


@pytest.mark.parametrize(("replicas", "asked"), [("48", False), ("49", True), ("60", True)])
def test_more_vgpus_than_older_drivers_have_clients_are_a_question_under_mps(replicas: str, asked: bool) -> None:  # noqa: FBT001 - what is expected
    made = imported(MPS.replace("10", replicas))
    assert made.vgpus_per_gpu == int(replicas)
    assert bool(made.questions) == asked
    assert imported(TIME_SLICED.replace("4", replicas)).questions == ()


def test_the_question_about_drivers_says_what_to_write_for_older_ones() -> None:
    (question,) = imported(MPS.replace("10", "60")).questions
    assert question == (
        "do all nodes have a driver with CUDA 13.1 or newer, as nvidia-smi shows it? MPS serves 48 clients on a GPU "
        "with older ones, and a GPU with vgpusPerGpu 60 is not shared there. Else 48 comes nearest: one of 60 replicas "
        'is then 1, share.minimum "0.02" and share.maximum "0.021"'
    )
    made = imported(config_map(a=MPS, b=TIME_SLICED.replace("4", "25")), default="a", nodes=("nodes", "n a\n"))
    assert made.vgpus_per_gpu == 50
    assert made.questions[0].endswith(
        'Else 22 comes nearest: one of 10 replicas is then 2, share.minimum "0.09" and share.maximum "0.091"; '
        'one of 25 replicas is then 1, share.minimum "0.045" and share.maximum "1"'
    )


def test_more_than_100_replicas_are_a_question_too() -> None:
    made = imported(TIME_SLICED.replace("4", "1000"))
    assert made.vgpus_per_gpu == 100
    assert "more than 100 replicas" in made.questions[0]


def test_nodes_of_another_strategy_are_named_where_they_are_known() -> None:
    text = config_map(mps=MPS, sliced=TIME_SLICED, plain=UNSHARED)
    columns = "NAME CONFIG\nm-1 mps\ns-1 sliced\ns-2 sliced\np-1 plain\nd-1 <none>\n"
    made = imported(text, default="mps", nodes=("nodes", columns))
    cluster = in_force(made).cluster
    strategies = {
        node: cluster.strategy(node=node, model="x", index=0, otherwise="mps") for node in ("m-1", "s-1", "s-2", "d-1")
    }
    assert strategies == {"m-1": "mps", "s-1": "time-slicing", "s-2": "time-slicing", "d-1": "mps"}
    labelled = " ".join(commands(made))
    assert all(node in labelled for node in strategies)
    assert "p-1" not in labelled


@pytest.mark.parametrize("default", ["mps", "sliced"])
def test_the_usual_strategy_is_that_of_the_default_and_others_go_by_name(default: str) -> None:
    made = imported(
        config_map(mps=MPS, sliced=TIME_SLICED), default=default, nodes=("nodes", "m-1 mps\ns-1 sliced\nd-1 <none>")
    )
    cluster = in_force(made).cluster
    for node, expected in (
        ("m-1", "mps"),
        ("s-1", "time-slicing"),
        ("d-1", "mps" if default == "mps" else "time-slicing"),
    ):
        assert cluster.strategy(node=node, model="x", index=0, otherwise="mps") == expected


def test_nodes_of_another_strategy_are_asked_for_where_they_are_not_known() -> None:
    made = imported(config_map(mps=MPS, sliced=TIME_SLICED), default="mps")
    assert any("--nodes" in one and '"sliced"' in one for one in made.questions)


def test_namespaces_of_another_configuration_go_to_its_nodes() -> None:
    policies = in_force(imported(config_map(mps=MPS, sliced=TIME_SLICED), default="mps"))
    placement = policies.of("sliced").policy.placement
    assert placement.node_selector == {"nvidia.com/device-plugin.config": "sliced"}
    assert policies.of("sliced").policy.strategy == "time-slicing"


def test_whether_nodes_without_the_label_are_shared_is_never_guessed() -> None:
    text = config_map(default=MPS)
    unlabelled = "!nvidia.com/device-plugin.config"
    asked = imported(text)
    assert any("--no-default" in one for one in asked.questions)
    assert not any(unlabelled in one for one in commands(asked))
    said = imported(text, default="default")
    assert said.questions == ()
    assert any(unlabelled in one for one in commands(said))
    none = imported(text, default=NO_DEFAULT)
    assert none.questions == ()
    assert not any(unlabelled in one for one in commands(none))


@pytest.mark.parametrize(
    "values",
    [
        {"config": {"default": "a", "map": {"a": MPS, "b": UNSHARED}}},
        {"devicePlugin": {"config": {"name": "x", "create": True, "default": "a", "data": {"a": MPS, "b": UNSHARED}}}},
    ],
)
def test_the_values_of_a_chart_say_the_default_themselves(values: dict[str, object]) -> None:
    made = imported(values)
    assert made.questions == ()
    assert [(one.configuration, one.is_default) for one in made.groups] == [("a", True), ("b", False)]


def test_configurations_that_want_other_options_are_a_question() -> None:
    spread = MPS + "flags: {plugin: {sharedDevicesAllocationPolicy: distributed}}\n"
    made = imported(config_map(a=MPS, b=spread), default="a")
    assert made.options == {}
    assert any("GPU_SHARE_ALLOCATION_POLICY=spread" in one for one in made.questions)


def test_a_node_with_a_configuration_that_is_not_there_is_named() -> None:
    with pytest.raises(PolicyError, match=r"nodes:2: gpu-2: .*none of the configurations"):
        imported(config_map(a=MPS), default="a", nodes=("nodes", "gpu-1 a\ngpu-2 b\n"))
