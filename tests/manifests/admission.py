"""Evaluate match conditions and admission policies of the manifests as the API server does: their CEL, over pods."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import cel

from policies.contract import WEBHOOK_NAME
from policies.quantity import whole
from tests.manifests.quantities import kept
from tests.manifests.render import MANIFESTS, Object, render

NAMESPACE_NAME = "kubernetes.io/metadata.name"


def stored(pod: Object) -> Object:
    """Return *pod* as the API server passes it to CEL: quantities as it keeps them, default requests, no nulls."""
    made: Object = _without_nulls(pod)
    made.setdefault("metadata", {})
    for container in (*made["spec"].get("initContainers", []), *made["spec"]["containers"]):
        resources = container.setdefault("resources", {})
        for name in ("limits", "requests"):
            if name in resources:
                resources[name] = {key: kept(value) for key, value in resources[name].items()}
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | resources.get("requests", {})
    return made


def _integer(quantity: str) -> int:
    number = whole(quantity)
    assert number is not None, f"asInteger() fails on {quantity}, and the pod is denied without a message of ours"
    return number


USER = ("system:authenticated",)  # the groups of whoever sends the request
NODE = ("system:nodes", "system:authenticated")

# What the manifests use of Kubernetes' libraries of quantities, strings and lists. CEL reads x.f() as f(x).
_FUNCTIONS: Final[dict[str, Any]] = {
    "quantity": str,
    "asInteger": _integer,
    "replace": str.replace,
    "split": str.split,
    "trim": str.strip,
    "sum": sum,
    "join": lambda parts, between: between.join(parts),
}
_NAME: Final = re.compile(r"[A-Za-z]\w*")
_VARIABLE: Final = re.compile(r"\bvariables\.(\w+)")
_NAMESPACE: Final[Object] = {"metadata": {"name": "team"}}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


class Given:
    """Objects by name. To hand a large pod over takes longer than to compute with it: it is done once."""

    def __init__(self, **named: Any) -> None:
        self._named = named
        self._contexts: dict[frozenset[str], cel.Context] = {}

    def context(self, names: set[str]) -> cel.Context:
        """Return a context of those of *names* that there are."""
        known = frozenset(names & self._named.keys())
        if known not in self._contexts:
            self._contexts[known] = cel.Context({name: self._named[name] for name in known}, _FUNCTIONS)
        return self._contexts[known]


class Expression:
    """One expression, which is given only what it names."""

    def __init__(self, text: str) -> None:
        self._program = cel.compile(text)
        self._names = set(_NAME.findall(text))
        self._variables = set(_VARIABLE.findall(text))

    def value(self, given: Given, variables: Object | None = None) -> Any:
        """Compute it with what is *given* by name, and with the *variables* of its policy."""
        context = given.context(self._names)
        if self._variables:
            held = variables or {}
            context.add_variable("variables", {name: held[name] for name in self._variables & held.keys()})
        return self._program.execute(context)


@dataclass(frozen=True)
class Expressions:
    """The match conditions of a webhook or a policy, and the variables and validations of a policy."""

    conditions: dict[str, Expression]
    variables: dict[str, Expression] = field(default_factory=dict)
    validations: list[tuple[Expression, Expression | str]] = field(default_factory=list)  # and its message

    def matches(
        self,
        pod: Object,
        old: Object | None = None,
        *,
        groups: Sequence[str] = USER,
        request: Object | None = None,
    ) -> bool:
        """Whether *pod*, or another object, meets the match conditions."""
        request = request or {"userInfo": {"groups": list(groups)}}
        return self._match(Given(object=pod, oldObject=old, request=request))

    def _match(self, given: Given) -> bool:
        return all(_truth(condition.value(given)) for condition in self.conditions.values())

    def denials(
        self,
        pod: Object,
        old: Object | None = None,
        *,
        namespace: Object = _NAMESPACE,
        request: Object | None = None,
    ) -> list[str]:
        """Return the messages with which *pod* is denied; none if it is admitted, or does not match."""
        request = request or {"userInfo": {"groups": list(USER)}}
        given = Given(object=pod, oldObject=old, namespaceObject=namespace, request=request)
        if not self._match(given):
            return []
        variables: Object = {}
        for name, expression in self.variables.items():
            variables[name] = expression.value(given, variables)
        return [
            str(text.value(given, variables)) if isinstance(text, Expression) else text
            for expression, text in self.validations
            if not _truth(expression.value(given, variables))
        ]


def _truth(value: Any) -> bool:
    assert isinstance(value, bool), f"the API server expects a bool, got {value!r}"
    return value


def webhooks(objects: list[Object]) -> dict[str, Object]:
    """Return our webhooks by name."""
    (configuration,) = (one for one in objects if one["kind"] == "MutatingWebhookConfiguration")
    return {one["name"]: one for one in configuration["webhooks"]}


def webhook_conditions(objects: list[Object], name: str = WEBHOOK_NAME) -> Expressions:
    return Expressions(_conditions(webhooks(objects)[name]["matchConditions"]))


def policy(objects: list[Object], name: str = "gpu-share") -> Expressions:
    spec = policy_spec(objects, name)
    return Expressions(
        _conditions(spec.get("matchConditions", [])),
        {one["name"]: Expression(one["expression"]) for one in spec.get("variables", [])},
        [
            (
                Expression(one["expression"]),
                Expression(one["messageExpression"]) if "messageExpression" in one else one["message"],
            )
            for one in spec["validations"]
        ],
    )


def policy_spec(objects: list[Object], name: str = "gpu-share") -> Object:
    (found,) = (
        one for one in objects if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == name
    )
    spec: Object = found["spec"]
    return spec


def _conditions(listed: list[dict[str, str]]) -> dict[str, Expression]:
    return {one["name"]: Expression(one["expression"]) for one in listed}


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector matches."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for one in selector.get("matchExpressions", []):
        held = labels.get(one["key"]) in one["values"]
        assert one["operator"] in ("In", "NotIn")
        if held != (one["operator"] == "In"):
            return False
    return True


BASE = render(MANIFESTS)
