"""The JSON Schema takes the entries of `nodes` that the reader takes, as far as it asks for one of several fields."""

from typing import Any

import pytest
import yaml

from policies.reading.layers import read_layer
from policies.reading.schema import cluster_schema


@pytest.mark.parametrize(
    "entry",
    [
        "{model: '*T4*', device: t4, vgpusPerGpu: 4}",
        "{device: t4}",
        "{mig: shared}",
        "{offer: mps}",
        "{allocation: dra}",
    ],
)
def test_an_entry_of_nodes_that_is_read_has_one_of_the_fields_that_the_schema_asks_for(entry: str) -> None:
    assert _is_read(entry)
    assert _has_one(entry)


@pytest.mark.parametrize("entry", ["{model: '*T4*'}", "{mig: none, device: null}"])
def test_an_entry_of_nodes_that_says_nothing_is_rejected_by_both(entry: str) -> None:
    assert not _is_read(entry)
    assert not _has_one(entry)


def _is_read(entry: str) -> bool:
    problems: list[Any] = []
    read_layer("_cluster.yaml", f"nodes: [{entry}]", problems)
    return not problems


def _has_one(entry: str) -> bool:
    fields = yaml.safe_load(entry)
    return any(_holds(one, fields) for one in cluster_schema()["$defs"]["NodeRule"]["anyOf"])


def _holds(schema: dict[str, Any], fields: dict[str, Any]) -> bool:
    has_all = all(name in fields for name in schema["required"])
    return has_all and all(fields[name] != one["not"]["const"] for name, one in schema["properties"].items())
