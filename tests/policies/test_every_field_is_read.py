"""No field of a policy file is decoration: another value of it means another decision, patch, sentence or node."""

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from policies.cluster import Cluster
from policies.decision import decide
from policies.grant import Grant
from policies.pod import Pod
from policies.policy import Policy
from policies.policy_set import PolicySet
from policies.reading.reference import framework_table
from tests.policies.observed import CLUSTER, POLICY, Observed
from tests.policies.pods import policies
from tests.policies.reading.fields import leaves_of
from webhook.patch import operations
from webhook.preview.explain import explain

GPUS = [("n", "NVIDIA H200", 0), ("n", "Tesla T4", 1), ("m", "NVIDIA H200", 1)]


def with_field(field: str, value: Any, beside: dict[str, Any]) -> str:
    """The text of a file that says *value* for *field*."""
    document = copy.deepcopy(beside)
    *above, last = field.replace("[]", ".[]").split(".")
    holder: Any = document
    for step, following in zip(above, [*above, last][1:], strict=True):
        holder = holder[0] if step == "[]" else holder.setdefault(step, [{}] if following == "[]" else {})
    holder[last] = value
    return json.dumps(document)


def observable(by: PolicySet, on: dict[str, Any]) -> list[Any]:
    """What follows from policies, but for the policies themselves."""
    decision = decide(msgspec.convert(on, Pod), "team", by)
    made = operations(msgspec.convert(on, Pod), decision) if isinstance(decision, Grant) else []
    nodes = [
        (
            by.cluster.strategy(node=node, model=model, index=index, otherwise="mps"),
            by.cluster.strategy_of_instances(node=node, model=model, index=index),
            by.cluster.allocation(node=node, model=model, index=index, otherwise="device-plugin"),
        )
        for node, model, index in GPUS
    ]
    added = [by.catalogue.frameworks[one.name] for one in by.cluster.frameworks]
    return [type(decision), list(explain(decision, made)), msgspec.to_builtins(made), nodes, framework_table(added)]


def of_policy(field: str, value: Any, observed: Observed) -> list[Any]:
    return observable(policies(with_field(field, value, observed.beside), observed.cluster), observed.on)


def of_cluster(field: str, value: Any, observed: Observed) -> list[Any]:
    return observable(policies(observed.default, with_field(field, value, observed.beside)), observed.on)


@pytest.mark.parametrize(("field", "observed"), POLICY.items())
def test_a_field_of_a_policy_is_read(field: str, observed: Observed) -> None:
    assert of_policy(field, observed.first, observed) != of_policy(field, observed.second, observed)


@pytest.mark.parametrize(("field", "observed"), CLUSTER.items())
def test_a_field_of_the_cluster_is_read(field: str, observed: Observed) -> None:
    assert of_cluster(field, observed.first, observed) != of_cluster(field, observed.second, observed)


def test_every_field_is_observed() -> None:
    """A field that is new here needs a pod in `observed.py` on which it shows."""
    assert set(leaves_of(Policy)) == set(POLICY)
    assert set(leaves_of(Cluster)) == set(CLUSTER)


def test_a_field_that_nothing_reads_would_be_found() -> None:
    unread = msgspec.defstruct("Policy", [("unread", bool, True)], bases=(Policy,), frozen=True, kw_only=True)
    assert set(leaves_of(unread)) - set(POLICY) == {"unread"}


@pytest.mark.parametrize(("file", "model"), [("_default.yaml", Policy), ("_cluster.yaml", Cluster)])
def test_the_shipped_file_names_every_field(file: str, model: Any) -> None:
    def names(value: Any, path: str = "") -> set[str]:
        if not isinstance(value, dict) or path in lists:
            return {path}
        return {name for key, inner in value.items() for name in names(inner, f"{path}.{key}" if path else key)}

    lists = {"placement.nodeSelector", "resourceNames", "partitions", "vgpusPerInstance"}
    shipped = yaml.safe_load(Path("policies/files", file).read_text())
    assert names(shipped) == {field.partition("[")[0] for field in leaves_of(model)}
