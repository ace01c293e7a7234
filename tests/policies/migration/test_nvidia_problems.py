import base64

import pytest
import yaml

from policies.errors import PolicyError
from policies.migration.nvidia import import_nvidia
from tests.policies.migration.configurations import MPS, config_map, imported, outcomes


def problems(text: str, **options: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        import_nvidia(text, "config.yaml", **options)  # type: ignore[arg-type]
    return [str(one) for one in raised.value.problems]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: v2\n", 'config.yaml:1: version: expected v1, got "v2"'),
        ("- a\n", "config.yaml:1: expected a mapping, got a list"),
        ("flags: 7\n", "config.yaml:1: flags: expected a mapping, got 7"),
        ("flags: {migStrategy: sinlge}\n", "flags.migStrategy: expected none, single or mixed"),
        ("\nflags:\n  failOnInitError: maybe\n", "config.yaml:3: flags.failOnInitError: expected true or false"),
        ("flags: {plugin: {deviceListStrategy: 'envvar,cdi-cri'}}\n", "or a list of them, got"),
        ("flags: {plugin: {deviceIDStrategy: name}}\n", "expected uuid or index"),
        ("imex: {channelIDs: [1]}\n", "imex.channelIDs: expected [] or [0]"),
        ("Sharing: {}\n", "Sharing: unknown key: write sharing"),
        ("flags: {migstrategy: none}\n", "flags.migstrategy: unknown key: write migStrategy"),
        ("sharing: {timeSlicing: }\n", "sharing.timeSlicing: expected a mapping with resources"),
        ("sharing: {timeSlicing: {}}\n", "sharing.timeSlicing.resources: expected a list"),
        (
            "sharing: {mps: {resources: []}}\n",
            "sharing.mps.resources: expected a list with name and replicas, got an empty",
        ),
        ("sharing: {mps: {resources: [5]}}\n", "sharing.mps.resources[0].name: is missing"),
        ("sharing: {mps: {resources: [{name: gpu}]}}\n", "sharing.mps.resources[0].replicas: is missing"),
        ("sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}\n", "expected a whole number from 2 on, got 1"),
        ("sharing: {mps: {resources: [{name: gpu, replicas: '10'}]}}\n", 'expected a whole number from 2 on, got "10"'),
        ("sharing: {mps: {resources: [{name: gpu, replicas: true}]}}\n", "expected a whole number from 2 on, got true"),
        ("sharing: {mps: {resources: [{name: gpu, replicas: 2.5}]}}\n", "expected a whole number from 2 on, got 2.5"),
        ("sharing: {mps: {resources: [{name: GPU, replicas: 2}]}}\n", "expected a resource of at most 63 characters"),
        ("sharing: {mps: {resources: [{name: " + 60 * "a" + ", replicas: 2}]}}\n", "at most 63 characters"),
        ("sharing: {mps: {Resources: [], resources: [{name: gpu, replicas: 2}]}}\n", "unknown key: write resources"),
        ("sharing: {mps: {resources: [{name: gpu, replicas: 2, devices: some}]}}\n", "expected all, a number of GPUs"),
        (
            "sharing: {mps: {renameByDefault: 1, resources: [{name: gpu, replicas: 2}]}}\n",
            "expected true or false, got 1",
        ),
        ("a: &a {}\nb: *a\n", "config.yaml:1: anchors and tags are not allowed"),
        ("a: 1\na: 2\n", '"a" is here twice'),
        ("a: !!python/object:os.system {}\n", "anchors and tags"),
        ("[" * 60_000, "more than 32 levels"),
        ("a: [", "invalid YAML"),
        ("x" * (1024 * 1024 + 1), "larger than 1024 KiB"),
        ("a: 1\n---\nb: 2\n", "one document"),
        ("kind: Deployment\n", 'expected a ConfigMap, got "Deployment"'),
        ("kind: ConfigMap\n", "has no data"),
        ("kind: ConfigMap\ndata: {}\n", "expected configurations under names"),
        ("kind: ConfigMap\ndata: {a: {version: v1}}\n", "expected the text of a configuration, got a mapping"),
        ('kind: ConfigMap\ndata: {"$(reboot)": x}\n', "can be the value of a node's label"),
        ('config: {default: b, map: {a: ""}}\n', '"b" is none of the configurations'),
    ],
)
def test_what_nvidias_plugin_would_not_start_with_is_a_problem_with_its_place(text: str, told: str) -> None:
    found = problems(text)
    assert any(told in one for one in found), found
    assert all(one.startswith("config.yaml") and one.isprintable() and len(one) < 400 for one in found)


def test_all_problems_of_all_configurations_are_said_at_once() -> None:
    text = config_map(a=MPS.replace("v1", "v2").replace("10", "1"), b="flags: 3\n")
    lines = text.splitlines()
    found = problems(text)
    assert [one.split(": ")[1] for one in found] == ["a, version", "a, sharing.mps.resources[0].replicas", "b, flags"]
    for one, written in zip(found, ("version: v2", "replicas: 1", "flags: 3"), strict=True):
        assert written in lines[int(one.split(":")[1]) - 1]


def test_a_configuration_in_quotes_is_placed_by_its_own_lines() -> None:
    text = 'kind: ConfigMap\ndata:\n  a: "version: v1\\nflags: 3\\n"\n'
    assert problems(text) == [
        "config.yaml:3: a, line 2 of it, flags: expected a mapping, got 3: write its keys below it"
    ]


@pytest.mark.parametrize("key", ["flags.migStrategy", "sharing.mps", "unknown", "flägs", "a\\u001b[31m"])
def test_a_key_that_nvidias_plugin_ignores_is_reported_and_never_taken_for_another(key: str) -> None:
    made = imported(f'"{key}": {{resources: 5}}\n')
    assert list(outcomes(made).values()) == ["ignored"]
    assert all(one.key.isprintable() for one in made.findings)


@pytest.mark.parametrize("key", ["x.resources", "x.replicas", "Extra"])
def test_a_key_with_a_dot_is_not_the_key_behind_the_dot(key: str) -> None:
    made = imported(f'sharing: {{mps: {{"{key}": 1, resources: [{{name: gpu, replicas: 2, "{key}": 1}}]}}}}')
    assert outcomes(made)[f"sharing.mps.{key}"] == "ignored"
    assert outcomes(made)[f"sharing.mps.resources[0].{key}"] == "ignored"


def test_the_default_must_be_one_of_the_names() -> None:
    assert problems(config_map(a=MPS), default="b")[0].startswith('--default: "b" is none of the configurations')
    assert "has no names" in problems(MPS, default="b")[0]


@pytest.mark.parametrize("text", ["", "\n", "NAME  CONFIG\n"])
def test_a_list_of_no_nodes_is_not_taken_for_what_is_known_of_them(text: str) -> None:
    with pytest.raises(PolicyError, match="nodes: no node is in it: save the output of kubectl get nodes"):
        imported(config_map(a=MPS), default="a", nodes=("nodes", text))


@pytest.mark.parametrize("written", ['"yes"', "'on'", "yEs"])
def test_what_is_no_boolean_to_the_plugin_either_is_a_problem(written: str) -> None:
    text = f"sharing: {{mps: {{failRequestsGreaterThanOne: {written}, resources: [{{name: gpu, replicas: 4}}]}}}}\n"
    with pytest.raises(PolicyError, match="failRequestsGreaterThanOne: expected true or false"):
        imported(text)


def test_nodes_are_of_no_use_for_a_file_without_names() -> None:
    with pytest.raises(PolicyError, match="--nodes: the file has no names"):
        imported(MPS, nodes=("nodes", "gpu-1 a\n"))


def test_many_large_numbers_of_replicas_take_no_time_to_speak_of() -> None:
    text = config_map(
        **{
            f"c{number}": f"sharing: {{mps: {{resources: [{{name: gpu, replicas: {10**17 + number}}}]}}}}"
            for number in range(3000)
        }
    )
    assert imported(text, default="c1").vgpus_per_gpu == 60


def test_binary_noise_is_a_problem_and_no_traceback() -> None:
    noise = base64.b64encode(bytes(range(256))).decode()
    assert problems(f"{noise}: [{noise}")
    assert problems(yaml.safe_dump({"kind": "ConfigMap", "data": {"a": noise}}))
