"""`nodes` of `_cluster.yaml`: which GPUs are handed out as what."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cluster import Cluster
from policies.contract import WHOLE_GPU_RESOURCE_PREFIXES, SharingStrategy
from policies.errors import Problem
from policies.nodes import NodeRule
from policies.reading.layers import read_layer
from tests.policies.pods import policies

H200, T4 = "NVIDIA H200", "Tesla T4"


def problems_of(text: str) -> list[Problem]:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", text, problems)
    return problems


def cluster(nodes: str) -> Cluster:
    return policies(cluster=f"nodes: {nodes}").cluster


def offered(
    by: Cluster, *, node: str = "n", model: str = H200, index: int = 0, otherwise: SharingStrategy = "mps"
) -> str | None:
    return by.strategy(node=node, model=model, index=index, otherwise=otherwise)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("nodes: {}", 1, "nodes", "expected a list, got a mapping"),
        ("nodes:", 1, "nodes", "expected a list, got nothing"),
        ("nodes:\n- whole", 2, "nodes[0]", 'expected a mapping, got "whole"'),
        ("nodes:\n- {offer: mps}\n- {node: a}", 3, "nodes[1]", "add offer, mig, allocation, device or"),
        ("nodes: [{mig: split}]", 1, "nodes[0].mig", "expected shared, whole or none"),
        ("nodes:\n- node: a\n  offer: vgpus", 3, "nodes[0].offer", "expected mps, time-slicing, whole or none"),
        ("nodes: [{offer: null, mig: none}]", 1, "nodes[0]", "add offer, mig, allocation, device or"),
        ("nodes: [{offer: none, index: 0}]", 1, "nodes[0].index", "did you mean indexes?"),
        ("nodes: [{offer: none, node: ''}]", 1, "nodes[0].node", "expected a glob of at most 100 characters"),
        ("nodes: [{offer: none, node: ' a'}]", 1, "nodes[0].node", "expected a glob"),
        ('nodes: [{offer: none, node: "a\\n"}]', 1, "nodes[0].node", "expected a glob"),
        (f"nodes: [{{offer: none, node: {'x' * 101}}}]", 1, "nodes[0].node", "at most 100 characters"),
        (f"nodes: [{{offer: none, model: {'x' * 101}}}]", 1, "nodes[0].model", 'like "*H200*"'),
        ("nodes: [{offer: none, model: 200}]", 1, "nodes[0].model", "got 200: put it in quotes"),
        (
            "nodes: [{offer: none, indexes: []}]",
            1,
            "nodes[0].indexes",
            "a list with at least 1 item, got an empty list",
        ),
        ("nodes: [{offer: none, indexes: 0}]", 1, "nodes[0].indexes", "got 0: write it like [0]"),
        ("nodes:\n- offer: none\n  indexes:\n  - 0\n  - -1", 5, "nodes[0].indexes[1]", "got -1"),
        (
            "nodes: [{offer: none, indexes: [1024]}]",
            1,
            "nodes[0].indexes[0]",
            "expected a whole number from 0 to 1023, got 1024",
        ),
        ("nodes: [{offer: none, indexes: [1.5]}]", 1, "nodes[0].indexes[0]", "got 1.5"),
        ("nodes: [{offer: none, indexes: [true]}]", 1, "nodes[0].indexes[0]", "true"),
    ],
)
def test_a_fault_is_reported_with_line_field_and_what_was_expected(
    text: str, line: int, field: str, words: str
) -> None:
    (problem,) = problems_of(text)
    assert (problem.file, problem.line, problem.field) == ("_cluster.yaml", line, field)
    assert words in problem.message
    assert str(problem).isprintable()


def test_every_faulty_entry_is_reported_at_once() -> None:
    text = "nodes:\n- {offer: mps}\n- {offer: mig}\n- {ofer: mps, model: ''}\n"
    assert [(one.line, one.field) for one in problems_of(text)] == [
        (3, "nodes[1].offer"),
        (4, "nodes[2].ofer"),
        (4, "nodes[2].model"),
    ]


@pytest.mark.parametrize("prefix", WHOLE_GPU_RESOURCE_PREFIXES)
@pytest.mark.parametrize("offer", ["mps", "whole"])
def test_no_kind_has_the_name_of_a_vendors_own_resource(offer: str, prefix: str) -> None:
    # The policy in the API server would refuse every pod with one.
    (problem,) = problems_of(f"mps: {{}}\nresourceNames: {{{offer}: {prefix}x}}")
    assert (problem.line, problem.field) == (2, f"resourceNames.{offer}")
    assert "none of a vendor's own plugin" in problem.message
    assert problems_of(f"resourceNames: {{{offer}: x{prefix}x}}") == []


def test_without_entries_a_gpu_is_what_its_node_offers() -> None:
    assert [offered(Cluster(), otherwise=one) for one in ("mps", "time-slicing", "whole")] == [
        "mps",
        "time-slicing",
        "whole",
    ]


def test_the_first_entry_that_fits_decides() -> None:
    by = cluster("[{node: gpu-7, indexes: [0, 1], offer: whole}, {node: gpu-*, offer: time-slicing}, {offer: none}]")
    assert [offered(by, node="gpu-7", index=index) for index in (0, 1, 2)] == ["whole", "whole", "time-slicing"]
    assert offered(by, node="gpu-70") == "time-slicing"
    assert offered(by, node="other") is None


def test_an_entry_fits_if_all_that_it_says_fits() -> None:
    by = cluster("[{node: a, model: '*T4', indexes: [3], offer: none}]")
    assert offered(by, node="a", model=T4, index=3) is None
    for otherwise in ({"node": "b"}, {"model": H200}, {"index": 0}):
        assert by.strategy(**{"node": "a", "model": T4, "index": 3, "otherwise": "mps", **otherwise}) == "mps"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("glob", "model", "fits"),
    [
        ("*h200*", H200, True),
        ("*H200*", "nvidia h200 nvl", True),
        ("H200", H200, False),  # all of the name, not a part of it
        ("NVIDIA H200", H200, True),
        ("nvidia ?200", H200, True),
        ("nvidia ??200", H200, False),
        ("*", "", True),
        ("?", "", False),
        ("*.*", H200, False),
        ("nvidia.h200", H200, False),  # a dot is a dot
        ("NVIDIA H200", f"{H200}\n", False),
        ("*[", "a[", True),
        ("(*", H200, False),
    ],
)
def test_a_model_is_a_glob_whose_case_does_not_matter(glob: str, model: str, *, fits: bool) -> None:
    assert NodeRule(model=glob, strategy="whole").fits(node="n", model=model, index=0) is fits


@pytest.mark.parametrize(
    ("glob", "node", "fits"),
    [("gpu-*", "gpu-1.example", True), ("GPU-*", "gpu-1", False), ("*.b", "a.b", True), ("a", "a.b", False)],
)
def test_a_node_is_a_glob_whose_case_matters(glob: str, node: str, *, fits: bool) -> None:
    assert NodeRule(node=glob, strategy="whole").fits(node=node, model=H200, index=0) is fits


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("*a" * 50, False),
        ("a*" * 49 + "ab", False),
        ("*?" * 49 + "b", False),
        ("*" * 99 + "b", False),
        ("*[a]" * 25, False),
        ("*[!b]" * 20, True),
    ],
)
def test_a_hostile_glob_is_matched_in_one_go(glob: str, *, fits: bool) -> None:
    # With a matcher that tries all ways to share a name out among the stars, this test would not end.
    rule = NodeRule(node=glob, model=glob, strategy="none")
    name = "a" * 253 + "-"
    assert rule.fits(node=name, model=name, index=0) is fits


@given(st.text(st.sampled_from("*?[]!-^&|~\\(a.0"), min_size=1, max_size=100), st.text(max_size=40))
def test_no_glob_is_denied_by_the_matcher(glob: str, name: str) -> None:
    assert NodeRule(node=glob, model=glob, strategy="none").fits(node=name, model=name, index=0) in (True, False)


def test_the_example_in_the_shipped_file_can_be_taken_as_it_stands() -> None:
    text = Path("policies/files/_cluster.yaml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# - ")]
    assert lines
    by = cluster("\n" + "\n".join(lines))
    assert offered(by, model=T4) == "time-slicing"
    assert by.strategy_of_instances(node="n", model="NVIDIA H100 80GB HBM3", index=0) == "mps"
    assert offered(by, node="gpu-7", index=1) == "whole"
    assert by.parts("mps", "model-l4") == 4


def test_mig_instances_are_shared_only_where_an_entry_says_so() -> None:
    by = cluster("[{indexes: [0], mig: shared}, {indexes: [1], offer: none, mig: whole}, {offer: time-slicing}]")
    found = [by.strategy_of_instances(node="n", model=H200, index=index) for index in range(3)]
    assert found == ["mps", "whole", None]
    assert Cluster().strategy_of_instances(node="n", model=H200, index=0) is None
    assert [offered(by, index=index, otherwise="whole") for index in range(3)] == ["whole", None, "time-slicing"]
