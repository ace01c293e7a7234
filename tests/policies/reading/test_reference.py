"""The tables of fields: what may be written, from the schema."""

from typing import Any, Literal

import pytest

from policies.reading.reference import table
from policies.reading.schema import cluster_schema, policy_schema

Model = Literal["Policy", "Cluster", "Framework"]


def _row(model: Model, field: str) -> list[str]:
    (row,) = (line for line in table(model).splitlines() if line.startswith(f"| `{field}` |"))
    return [cell.strip() for cell in row.strip("|").split(" | ")]


@pytest.mark.parametrize(
    ("model", "field", "values", "default"),
    [
        ("Policy", "enabled", "`true`, `false`", "`true`"),
        ("Policy", "share.rounding", "`exact`, `up`", "`up`"),
        ("Policy", "share.maximum", 'text, such as `"0.2"`, `"20%"`, `"1"`', '`"1"`'),
        ("Policy", "share.podMaximum", 'text, such as `"0.2"`, `"20%"`, `"1"` or `null`', "`null`"),
        ("Policy", "placement.nodeSelector", "mapping", "`{}`"),
        ("Policy", "placement.tolerations", "list of entries", "`[]`"),
        ("Cluster", "vgpusPerGpu", "1 to 100", "`10`"),
        ("Cluster", "nodes[].indexes", "list of 0 to 1023 or `null`", "`null`"),
        ("Cluster", "nodes[].offer", "`mps`, `none`, `time-slicing`, `whole` or `null`", "`null`"),
        ("Cluster", "nodes[].mig", "`none`, `shared`, `whole`", "`none`"),
        ("Framework", "memory", "fields below or `null`", "`null`"),
        ("Framework", "constants[].strategies", "list of `mps`, `time-slicing`", '`["mps","time-slicing"]`'),
    ],
)
def test_a_row_says_values_and_default(model: Model, field: str, values: str, default: str) -> None:
    assert _row(model, field)[1:3] == [values, default]


@pytest.mark.parametrize(
    ("model", "field", "longest"),
    [("Cluster", "mps.pipeDirectory", "46 characters"), ("Framework", "name", "63 characters")],
)
def test_a_row_says_how_long_a_text_may_be(model: Model, field: str, longest: str) -> None:
    values = _row(model, field)[1]
    assert values == f"text of at most {longest}" or values.startswith(f"text of at most {longest}, such as ")


@pytest.mark.parametrize("model", ["Policy", "Cluster"])
def test_every_choice_of_the_schema_is_in_the_table(model: Model) -> None:
    schema = policy_schema() if model == "Policy" else cluster_schema()
    sections = {name: of for name, of in schema["$defs"].items() if name not in ("Toleration", "Framework")}
    rows = table(model) + (table("Framework") if model == "Cluster" else "")
    choices = [field["enum"] for of in sections.values() for field in of["properties"].values() if "enum" in field]
    assert choices
    for choice in choices:
        assert f"| {', '.join(f'`{value}`' for value in choice)} |" in rows


@pytest.mark.parametrize("model", ["Policy", "Cluster", "Framework"])
def test_a_table_has_four_cells_in_every_row(model: Model) -> None:
    assert {line.replace("\\|", "").count("|") for line in table(model).splitlines()} == {5}


@pytest.mark.parametrize("model", ["Policy", "Cluster"])
def test_every_field_of_a_policy_has_a_meaning(model: Model) -> None:
    empty: list[Any] = [line for line in table(model).splitlines() if line.endswith("|  |")]
    assert empty == []


def test_stars_in_a_meaning_are_not_emphasis() -> None:
    assert "CUDA_MPS_\\*" in table("Policy")
    assert "(\\* and ? allowed)" in table("Cluster")
