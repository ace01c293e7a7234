import msgspec
import pytest

from policies.cluster import Cluster
from policies.errors import Problem
from policies.policy import EffectivePolicy
from policies.reading.layers import Layer, effective, read_layer
from policies.reading.schema import cluster_schema, policy_schema


def problems_of(text: str, file: str = "team.yaml") -> list[Problem]:
    problems: list[Problem] = []
    read_layer(file, text, problems)
    return problems


def in_force(*files: tuple[str, str]) -> tuple[EffectivePolicy, list[Problem]]:
    problems: list[Problem] = []
    layers: list[Layer] = [read_layer(file, text, problems) for file, text in files]
    assert problems == []
    made = effective(layers, problems)
    return made, problems


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("enabeld: true", 1, "enabeld", "did you mean enabled?"),
        ("\n\nmod: warn", 3, "mod", "did you mean mode?"),
        ("share:\n  maximun: '0.5'", 2, "share.maximun", "did you mean maximum?"),
        ("share: {pod_maximum: '1'}", 1, "share.pod_maximum", "did you mean podMaximum?"),
        ("vgpusPerGpu: 10", 1, "vgpusPerGpu", "belongs in _cluster.yaml: move it there"),
        ("mps: {pipeDirectory: /x}", 1, "mps.pipeDirectory", "belongs in _cluster.yaml: move it there"),
        ("frameworks: []", 1, "frameworks", "belongs in _cluster.yaml: move it there"),
        ("pipeDirectory: /x", 1, "pipeDirectory", "unknown field: known are enabled, mode"),
        ("xyzzy: 1", 1, "xyzzy", "unknown field: known are enabled"),
        ("<<: {enabled: false}", 1, "<<", "unknown field"),
        ("enabled: no", 1, "enabled", 'expected true or false, got "no": write false'),
        ("enabled: 1", 1, "enabled", "expected true or false, got 1"),
        ("enabled:", 1, "enabled", "expected true or false, got nothing"),
        ("mode: Warn", 1, "mode", 'expected enforce or warn, got "Warn": did you mean warn?'),
        ("mode: true", 1, "mode", "expected enforce or warn, got true"),
        ("strategy: timeslicing", 1, "strategy", "expected mps, time-slicing or partition"),
        ("strategy: [mps]", 1, "strategy", "expected mps, time-slicing or partition, got a list"),
        ("share: 0.2", 1, "share", "expected a mapping, got 0.2"),
        ("share:", 1, "share", "expected a mapping, got nothing"),
        ("share: [a]", 1, "share", "expected a mapping, got a list"),
        ("share:\n  maximum: 0.5", 2, "share.maximum", 'got 0.5: write "0.5"'),
        ("share:\n  maximum: 1", 2, "share.maximum", 'got 1: write "1"'),
        ("share:\n  maximum: -0.3", 2, "share.maximum", 'got -0.3: write it like "0.2"'),
        ("share:\n  maximum: 0.3333", 2, "share.maximum", 'got 0.3333: write it like "0.2"'),
        ("share:\n  minimum: '0'", 2, "share.minimum", "is zero"),
        ("share:\n  maximum: half", 2, "share.maximum", 'invalid share "half"'),
        ("share:\n  maximum: '1.5'", 2, "share.maximum", "above 1 and not a whole number"),
        ("share:\n  maximum: null", 2, "share.maximum", 'got nothing: write it like "0.2"'),
        ("share:\n  maximum: {a: b}", 2, "share.maximum", 'got a mapping: write it like "0.2"'),
        ("share: {rounding: down}", 1, "share.rounding", "expected up or exact"),
        ("share: {whole: gpu}", 1, "share.whole", 'expected vgpus or gpus, got "gpu"'),
        ("mps: {attach: both}", 1, "mps.attach", "expected auto, pod or node"),
        ("memory: {headroom: 0}", 1, "memory.headroom", 'write "0"'),
        ("memory: {headroom: '1'}", 1, "memory.headroom", "is not below 1"),
        ("memory: {basis: asked}", 1, "memory.basis", "expected requested or granted"),
        ("frameworks: {detect: 1}", 1, "frameworks.detect", "expected true or false"),
        ("frameworks: {onConflict: keep}", 1, "frameworks.onConflict", "expected lower or deny"),
        ("frameworks: {unread: allow}", 1, "frameworks.unread", "expected deny or warn"),
        ("environment: {reserved: allow}", 1, "environment.reserved", "expected deny or strip"),
        ("placement: {nodeSelector: {gpu: true}}", 1, "placement.nodeSelector.gpu", "got true: put it in quotes"),
        ("placement: {tolerations: {}}", 1, "placement.tolerations", "begin each of its items with a dash"),
        (
            "placement:\n  tolerations:\n  - {key: a}\n  - {kee: a}",
            4,
            "placement.tolerations[1].kee",
            "did you mean key?",
        ),
        ("placement:\n  tolerations:\n  - effect: Never", 3, "placement.tolerations[0].effect", "NoSchedule"),
        ("placement: {tolerations: [{}]}", 1, "placement.tolerations[0]", ""),
        *(
            (f"placement: {{tolerations: [{{{given}}}]}}", 1, f"placement.tolerations[0].{field}", words)
            for given, field, words in (
                ('key: "gpu=true", operator: Exists', "key", 'the key of a taint, got "gpu=true"'),
                ('key: "nvidia.com/gpu "', "key", "the key of a taint"),
                ('key: gpu, value: "a,b"', "value", 'the value of a label, got "a,b"'),
                ('key: gpu, operator: Gt, value: "5"', "operator", "expected Equal or Exists"),
                (f"key: gpu, effect: NoExecute, tolerationSeconds: {1 << 63}", "tolerationSeconds", "whole number"),
            )
        ),
        (
            "placement: {nodeSelector: {not a key: x}}",
            1,
            "placement.nodeSelector",
            'the key of a label, got "not a key"',
        ),
        ("placement: {nodeSelector: {gpu: not a value}}", 1, "placement.nodeSelector.gpu", "the value of a label"),
        ("placement: {runtimeClassName: Not A Name}", 1, "placement.runtimeClassName", ""),
        ("placement: {schedulerName: ''}", 1, "placement.schedulerName", ""),
        ("placement: {runtimeClassName: 5}", 1, "placement.runtimeClassName", "got 5: put it in quotes"),
        ("- a", 1, "", "expected a mapping, got a list"),
        ("text", 1, "", 'expected a mapping, got "text"'),
        ("a: &x 1", 1, "", "anchors"),
        ("a: [", 2, "", "invalid YAML"),
    ],
)
def test_a_fault_is_reported_with_line_field_and_what_was_expected(
    text: str, line: int, field: str, words: str
) -> None:
    (problem,) = problems_of(text)
    assert (problem.file, problem.field) == ("team.yaml", field)
    assert problem.line == line or "invalid YAML" in problem.message
    assert words in problem.message
    assert str(problem).startswith(f"team.yaml:{problem.line}: ")
    assert str(problem).isprintable()
    assert "`" not in str(problem)


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("vgpusPerGpu: 0", "vgpusPerGpu", "expected a whole number from 1 to 100, got 0"),
        ("vgpusPerGpu: 101", "vgpusPerGpu", "from 1 to 100, got 101: write it like 10"),
        ("vgpusPerGpu: '10'", "vgpusPerGpu", ""),
        ("vgpusPerGpu: 2.5", "vgpusPerGpu", ""),
        ("vgpusPerGpu: 1e999", "vgpusPerGpu", ""),
        ("vgpusPerGPU: 10", "vgpusPerGPU", "did you mean vgpusPerGpu?"),
        ("mps: {pipeDirectory: relative}", "mps.pipeDirectory", ""),
        ("mps: {pipeDirectory: /tmp/../etc}", "mps.pipeDirectory", ""),
        ("mps: {pipeDirectory: /}", "mps.pipeDirectory", ""),
        ("mps: {pipeDirectory: /tmp/mps/}", "mps.pipeDirectory", ""),
        ('mps: {pipeDirectory: "/tmp/mps\\n"}', "mps.pipeDirectory", ""),
        (f"mps: {{pipeDirectory: /{'x' * 46}}}", "mps.pipeDirectory", ""),
        ("resourceNames: {mps: vgpu}", "resourceNames.mps", 'got "vgpu": write it like "example.com/vgpu"'),
        ("resourceNames: {mps: kubernetes.io/vgpu}", "resourceNames.mps", ""),
        ("resourceNames: {mps: requests.example.com/vgpu}", "resourceNames.mps", ""),
        ("resourceNames: {other: example.com/vgpu}", "resourceNames", 'mps, time-slicing or whole, got "other"'),
        ('resourceNames: {mps: "example.com/vgpu\\n"}', "resourceNames.mps", ""),
        ("exemptNamespaces: kube-system", "exemptNamespaces", 'got "kube-system": write it like ["kube-system"]'),
        ("share: {maximum: '1'}", "share", "belongs in _default.yaml or <namespace>.yaml: move it there"),
        ("mps: {attach: node}", "mps.attach", "belongs in _default.yaml or <namespace>.yaml: move it there"),
        ("frameworks: {detect: true}", "frameworks", "belongs in _default.yaml or <namespace>.yaml"),
        ("exemptNamespaces: [1]", "exemptNamespaces[0]", ""),
        ("frameworks: 5", "frameworks", "items, got 5: begin each of its items with a dash"),
        ("frameworks: [{name: x}]", "frameworks[0].source", "is missing"),
        ("frameworks: [{name: X Y, source: s}]", "frameworks[0].name", ""),
        ('frameworks: [{name: "x\\n", source: s}]', "frameworks[0].name", ""),
        ("frameworks: [{name: x, source: s, otherPrograms: [b]}]", "frameworks[0].otherPrograms[0]", "two words"),
        ("frameworks: [{name: none, source: s}]", "frameworks[0]", "switches frameworks off"),
        ('frameworks: [{name: x, source: s, programs: [""]}]', "frameworks[0].programs[0]", ""),
        ('frameworks: [{name: x, source: s, programs: [" "]}]', "frameworks[0].programs[0]", ""),
        ('frameworks: [{name: x, source: s, images: [""]}]', "frameworks[0].images[0]", ""),
        ("frameworks: [{name: x, source: s, memory: {spellings: []}}]", "frameworks[0].memory.spellings", ""),
        (
            "frameworks: [{name: x, source: s, memory: {spellings: [{argument: --aa, variable: A}]}}]",
            "frameworks[0].memory.spellings[0]",
            "expected one of argument and variable: give exactly one",
        ),
        (
            "frameworks: [{name: x, source: s, memory: {spellings: [{argument: --aa, value: '1'}]}}]",
            "frameworks[0].memory.spellings[0].value",
            "",
        ),
    ],
)
def test_a_fault_in_the_cluster_file_is_reported(text: str, field: str, words: str) -> None:
    problems = problems_of(text, "_cluster.yaml")
    assert field in [problem.field for problem in problems]
    assert all(str(problem).isprintable() for problem in problems)
    assert any(words in problem.message for problem in problems)


def test_two_entries_of_one_framework_are_a_fault() -> None:
    text = "frameworks:\n- {name: x, source: s}\n- {name: x, source: t}\n"
    assert [problem.line for problem in problems_of(text, "_cluster.yaml")] == [3]


def test_equal_resource_names_are_a_fault() -> None:
    (problem,) = problems_of("resourceNames: {mps: a.b/c, time-slicing: a.b/c}", "_cluster.yaml")
    assert "must differ" in problem.message


def test_every_fault_of_a_file_is_reported_at_once() -> None:
    text = "enabled: nope\nshare:\n  maximum: 1\n  rounding: down\nplacement:\n  nodeselector: {}\nmodes: warn\n"
    assert [(problem.line, problem.field) for problem in problems_of(text)] == [
        (1, "enabled"),
        (3, "share.maximum"),
        (4, "share.rounding"),
        (6, "placement.nodeselector"),
        (7, "modes"),
    ]


def test_a_namespace_overrides_single_fields() -> None:
    made, problems = in_force(
        ("_default.yaml", "mode: warn\nshare:\n  minimum: '0.1'\n  maximum: '0.8'\n"),
        ("team.yaml", "share:\n  maximum: '0.5'\n"),
    )
    assert problems == []
    assert (str(made.policy.share.minimum), str(made.policy.share.maximum)) == ("0.1", "0.5")
    assert made.policy.mode == "warn"
    assert str(made.source("share.minimum")) == "_default.yaml:3"
    assert str(made.source("share.maximum")) == "team.yaml:2"
    assert str(made.source("mode")) == "_default.yaml:1"
    assert str(made.source("strategy")) == "built-in default"
    assert made.name == "team"


def test_a_namespace_takes_a_value_back() -> None:
    made, _ = in_force(
        ("_default.yaml", "share: {podMaximum: '0.5'}\nplacement: {runtimeClassName: nvidia, nodeSelector: {a: b}}"),
        ("team.yaml", "share: {podMaximum: null}\nplacement: {runtimeClassName: null, nodeSelector: {}}"),
    )
    assert made.policy.share.pod_maximum is None
    assert made.policy.placement.runtime_class_name is None
    assert made.policy.placement.node_selector == {}


@pytest.mark.parametrize(
    ("default", "own", "told"),
    [
        ("share: {minimum: '0.5'}", "share: {maximum: '0.2'}",
         "share.maximum: share.minimum 0.5 (_default.yaml:2) is above 0.2"),
        ("share: {maximum: '0.2'}", "share: {minimum: '0.5'}",
         "share.minimum: 0.5 is above share.maximum 0.2 (_default.yaml:2)"),
        ("share: {podMaximum: '0.2'}", "share: {minimum: '0.5'}",
         "share.minimum: share.podMaximum 0.2 (_default.yaml:2) is below 0.5"),
        ("share: {minimum: '0.5'}", "share: {podMaximum: '0.2'}",
         "share.podMaximum: 0.2 is below share.minimum 0.5 (_default.yaml:2)"),
        ("memory: {headroom: '0.05'}", "share: {minimum: '0.01'}",
         "share.minimum: memory.headroom 0.05 (_default.yaml:2) leaves nothing of the smallest share, 0.01"),
        ("", "share: {minimum: '2'}", "share.minimum: 2 is above share.maximum 1 (built-in default)"),
        ("share: {minimum: '0.1'}", "memory: {headroom: '0.1'}",
         "memory.headroom: 0.1 leaves nothing of the smallest share, share.minimum 0.1 (_default.yaml:2)"),
    ],
)  # fmt: skip
def test_a_conflict_between_files_blames_the_one_on_top_and_names_the_other(default: str, own: str, told: str) -> None:
    _, problems = in_force(("_default.yaml", f"\n{default}"), ("team.yaml", own))
    assert [str(problem) for problem in problems] == [f"team.yaml:1: {told}: change one of the two"]


def test_the_schema_knows_every_field_and_its_default() -> None:
    share = policy_schema()["$defs"]["ShareRules"]["properties"]
    assert share["maximum"]["default"] == "1"
    assert share["minimum"]["default"] == "0.001"
    assert set(cluster_schema()["$defs"]["Cluster"]["properties"]) == {
        field.encode_name for field in msgspec.structs.fields(Cluster)
    }
    assert policy_schema()["$defs"]["Policy"]["additionalProperties"] is False
