"""A translation as text: the policy files, what to set on the nodes, what became of each key, and what is left."""

from collections.abc import Iterator
from typing import Any

from policies.contract import MPS, NODE_LABEL
from policies.migration.findings import MEANINGS, Finding
from policies.migration.imported import Group, Imported, Rules
from policies.migration.nodes import CONFIG_LABEL
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE

_OPERATOR_LABEL = "nvidia.com/gpu.deploy.device-plugin"  # of the GPU Operator: false keeps NVIDIA's plugin off the node


def files(made: Imported) -> dict[str, str]:
    """Write the policy files, by name."""
    written = {CLUSTER_FILE: _text(_cluster(made))}
    if made.main is not None and made.main.rules is not None:
        written[DEFAULT_FILE] = _text(_policy(made.main.rules))
    return written


def namespace_policy(group: Group) -> str:
    """Write the policy of namespaces whose pods belong on the nodes of *group*."""
    if group.rules is None:
        raise ValueError(group.configuration)
    placement = (
        [] if group.is_default else ["placement:", f'  nodeSelector: {{{CONFIG_LABEL}: "{group.configuration}"}}']
    )
    return _text([*_policy(group.rules), *placement])


def kustomization(made: Imported) -> str:
    """Write what a kustomization needs for the options of the plugin; empty if the defaults do."""
    if not made.options:
        return ""
    lines = [
        "patches:",
        "- patch: |",
        "    apiVersion: apps/v1",
        "    kind: DaemonSet",
        "    metadata: {name: gpu-share-plugin, namespace: gpu-share}",
        "    spec:",
        "      template:",
        "        spec:",
        "          containers:",
        "          - name: plugin",
        "            env:",
        *(f'            - {{name: {name}, value: "{value}"}}' for name, value in made.options.items()),
    ]
    return _text(lines)


def commands(made: Imported) -> list[str]:
    """Say on which nodes GPUs are shared, and how each of them is labelled, in this order."""
    listed = [f"kubectl get nodes {nodes}" for one in made.groups if one.rules for nodes in _nodes_of(one)]
    labelled = [
        f"kubectl label node NODE {_OPERATOR_LABEL}=false --overwrite",
        f"kubectl label node NODE {NODE_LABEL}=true",
    ]
    return [*listed, *labelled] if listed else []


def as_text(made: Imported, file: str) -> Iterator[str]:
    """Yield everything for people: documents of YAML, and the rest in comments."""
    for name, text in files(made).items():
        yield from (f"# {name}", text.rstrip("\n"), "---")
    for group in made.others:
        yield f'# <namespace>.yaml, for namespaces whose pods belong on the nodes of "{group.configuration}"'
        yield from (namespace_policy(group).rstrip("\n"), "---")
    if kustomization(made):
        yield from (
            "# kustomization.yaml, beside the rest of yours (docs/install.md)",
            kustomization(made).rstrip("\n"),
        )
        yield "---"
    yield from _comments(made, file)


def as_json(made: Imported) -> dict[str, Any]:
    """Return everything for programs."""
    return {
        "files": files(made),
        "namespaces": {one.configuration: namespace_policy(one) for one in made.others},
        "kustomization": kustomization(made),
        "commands": commands(made),
        "configurations": [_group(one) for one in made.groups],
        "keys": [
            {name: getattr(one, name) for name in ("configuration", "key", "line", "value", "outcome", "told")}
            for one in _sorted(made)
        ],
        "questions": list(made.questions),
    }


def _cluster(made: Imported) -> list[str]:
    lines = [f"vgpusPerGpu: {made.vgpus_per_gpu}{_replicas(made)}"]
    if made.handover:
        lines.append(f"handover: [{', '.join(made.handover)}]")
    if made.nodes:
        lines.append("nodes:")
        lines += [f'- {{node: "{node}", offer: {strategy}}}' for node, strategy in made.nodes]
    return lines


def _replicas(made: Imported) -> str:
    units = dict.fromkeys(one.rules.unit for one in made.groups if one.rules)
    told = [f"one of {one.replicas} replicas is {one.vgpus}" for one in units]
    return f" # {', '.join(told)}" if told else ""


def _policy(rules: Rules) -> list[str]:
    return [
        f"strategy: {rules.strategy}",
        "share:",
        f'  minimum: "{rules.minimum}"',
        f'  maximum: "{rules.maximum}"',
        '  podMaximum: "1"',
        *(["mps:", "  attach: node"] if rules.strategy == MPS else []),  # NVIDIA's plugin changes no pod either
    ]


def _comments(made: Imported, file: str) -> Iterator[str]:
    yield "# The nodes whose GPUs are shared, and the labels of each in its turn, when it is empty; the second when"
    yield "# NVIDIA's plugin is gone from it (docs/migrate.md, The order):"
    yield from (f"#   {one}" for one in commands(made) or ["none: no GPU is shared"])
    for group in made.groups:
        if group.rules is None and made.main is not None:
            yield f'#   the nodes of "{group.configuration}" share no GPUs, and stay with NVIDIA\'s plugin'
    yield f"# What became of each key of {file}:"
    for one in _sorted(made):
        where = f"{one.configuration}: " if one.configuration else ""
        line = f" (line {one.line})" if one.line else ""
        yield f"#   {where}{one.key}: {one.value}{line}"
        yield f"#     {one.outcome}: {one.told}"
    used = [outcome for outcome in MEANINGS if any(one.outcome == outcome for one in made.findings)]
    if used:
        yield "# " + "; ".join(f"{outcome}: {MEANINGS[outcome]}" for outcome in used)
    if made.questions:
        yield "# Left to decide:"
        yield from (f"#   {one}" for one in made.questions)


def _sorted(made: Imported) -> list[Finding]:
    """By configuration and line; what is not written comes last."""
    order = {one.configuration: index for index, one in enumerate(made.groups)}
    return sorted(made.findings, key=lambda one: (order[one.configuration], one.line == 0, one.line))


def _group(group: Group) -> dict[str, Any]:
    rules = group.rules
    return {
        "name": group.configuration,
        "isDefault": group.is_default,
        "strategy": rules.strategy if rules else None,
        "replicas": rules.unit.replicas if rules else None,
        "vgpus": rules.unit.vgpus if rules else None,
        "share": str(rules.unit.share) if rules else None,
        "isExact": rules.unit.is_exact if rules else None,
        "nodes": list(group.names),
    }


def _nodes_of(group: Group) -> list[str]:
    if group.names:
        return [" ".join(group.names)]
    return [f"-l '{selector}'" for selector in group.selectors]


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
