"""The JSON Schema of the policy files, for editors and for the reference."""

from typing import Any

import msgspec

from policies.cluster import Cluster
from policies.contract import MILLI_PER_GPU
from policies.policy import Policy
from policies.share import PATTERN, Headroom, Share

# Of an entry of `nodes` one of these must be there, and not be what it is by itself.
_ONE_OF_A_NODE = (("offer", None), ("mig", "none"), ("allocation", None), ("device", None))
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> dict[str, Any]:
    """Describe `_default.yaml` and `<namespace>.yaml`."""
    return _schema(Policy, "gpu-share policy of a namespace")


def cluster_schema() -> dict[str, Any]:
    """Describe `_cluster.yaml`."""
    schema = _schema(Cluster, "gpu-share settings of the cluster")
    schema["$defs"]["NodeRule"]["anyOf"] = [_has(name, unless) for name, unless in _ONE_OF_A_NODE]
    return schema


def _has(name: str, unless: str | None) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"const": unless}}}}


def _schema(model: type[msgspec.Struct], title: str) -> dict[str, Any]:
    schema = msgspec.json.schema(model, schema_hook=_custom)
    _complete_defaults(schema["$defs"], model)
    return {"$schema": _DRAFT, "title": title, **schema}


def _custom(of: type) -> dict[str, Any]:
    if of is Share:
        return {"type": "string", "pattern": PATTERN, "examples": ["0.2", "20%", str(Share(MILLI_PER_GPU))]}
    if of is Headroom:
        return {"type": "string", "pattern": PATTERN, "examples": ["0", "0.02"]}
    raise NotImplementedError(of)


def _complete_defaults(definitions: dict[str, Any], model: type[msgspec.Struct]) -> None:
    """Add the defaults of shares, which msgspec cannot write by itself."""
    for field in msgspec.structs.fields(model):
        default = field.default_factory() if callable(field.default_factory) else field.default
        if isinstance(default, Share | Headroom):
            definitions[model.__name__]["properties"][field.encode_name]["default"] = str(default)
        elif isinstance(default, msgspec.Struct):
            _complete_defaults(definitions, type(default))
