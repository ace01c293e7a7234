"""What NVIDIA's configurations become together: the policy files, the nodes, and what is left to decide."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from policies.contract import (
    MILLI_PER_GPU,
    MOST_MPS_CLIENTS,
    MPS,
    MPS_CLIENTS_BEFORE_CUDA_13_1,
    Handover,
    VgpuStrategy,
)
from policies.migration.findings import Finding
from policies.migration.nodes import COLUMNS, CONFIG_LABEL
from policies.migration.nvidia_file import Configuration
from policies.migration.nvidia_keys import handover, plugin_options
from policies.migration.nvidia_sharing import findings_of
from policies.migration.units import MOST_VGPUS_PER_GPU, Unit, unit, vgpus_per_gpu
from policies.mps_clients import needs_newer_driver
from policies.share import Share

_PRESENT = "nvidia.com/gpu.present=true"


class Rules(msgspec.Struct, frozen=True):
    """What a namespace's policy says for the pods of a configuration."""

    strategy: VgpuStrategy
    unit: Unit
    maximum: Share
    minimum: Share


class Group(msgspec.Struct, frozen=True):
    """The nodes of one configuration."""

    configuration: str  # empty for a file of its own
    rules: Rules | None  # None: its GPUs are not shared, and stay with NVIDIA's plugin
    selectors: tuple[str, ...]  # of kubectl, by which its nodes are found
    names: tuple[str, ...]  # if the nodes are known
    is_default: bool  # of nodes without the label


class Imported(msgspec.Struct, frozen=True):
    """The translation."""

    vgpus_per_gpu: int
    groups: tuple[Group, ...]
    main: Group | None  # whose rules are every namespace's; None if nothing is shared
    nodes: tuple[tuple[str, VgpuStrategy], ...]  # entries of `nodes`: a node's name or *, and how its GPUs are shared
    handover: tuple[Handover, ...]  # in every way that a configuration has
    options: dict[str, str]  # variables of the DaemonSet of the plugin
    findings: tuple[Finding, ...]
    questions: tuple[str, ...]

    @property
    def others(self) -> list[Group]:
        """The shared configurations whose namespaces need a policy of their own."""
        return [one for one in self.groups if one.rules and self.main and one.rules != self.main.rules]


class Known(msgspec.Struct, frozen=True):
    """What the administrator says of the nodes."""

    is_named: bool  # nodes choose a configuration by a label
    default: str | None = None  # of nodes without the label
    has_default: bool = False  # False: it is not known whether they have one
    nodes: Mapping[str, str | None] | None = None


def translate(configurations: Sequence[Configuration], known: Known) -> Imported:
    """Bring configurations together; none of them may have problems."""
    counts = {one.name: one.replicas for one in configurations if one.replicas}
    by_mps = any(one.active and one.active.strategy == MPS for one in configurations if one.name in counts)
    most = MOST_MPS_CLIENTS if by_mps else MOST_VGPUS_PER_GPU
    per_gpu = vgpus_per_gpu(list(counts.values()), most)
    groups = tuple(_group(one, known, per_gpu) for one in configurations)
    shared = [one for one in groups if one.rules]
    main = next((one for one in shared if one.is_default), shared[0] if shared else None)
    nodes, unknown = _nodes(groups, main, known)
    options = {one.name: plugin_options(one.values) for one in configurations if one.name in counts}
    agreed = next(iter(options.values()), {})
    disagree = any(one != agreed for one in options.values())
    return Imported(
        vgpus_per_gpu=per_gpu,
        groups=groups,
        main=main,
        nodes=nodes,
        handover=tuple(
            dict.fromkeys(way for one in configurations if one.name in counts for way in handover(one.values))
        ),
        options={} if disagree else agreed,
        findings=tuple(_findings(configurations, per_gpu)),
        questions=(
            *_about_units(groups, per_gpu, most),
            *([_about_drivers(configurations, per_gpu)] if by_mps and needs_newer_driver(per_gpu) else []),
            *_about_default(known, shared),
            *unknown,
            *_about_namespaces(groups, main),
            *([_about_options(options)] if disagree else []),
        ),
    )


def _group(configuration: Configuration, known: Known, per_gpu: int) -> Group:
    name = configuration.name
    is_default = not known.is_named or (known.has_default and known.default == name)
    selectors = [f"{_PRESENT},{CONFIG_LABEL}={name}"] if known.is_named else [_PRESENT]
    selectors += [f"{_PRESENT},!{CONFIG_LABEL}"] if known.is_named and is_default else []
    names = tuple(node for node, said in (known.nodes or {}).items() if said == name or (said is None and is_default))
    return Group(name, _rules(configuration, per_gpu), tuple(selectors), names, is_default)


def _rules(configuration: Configuration, per_gpu: int) -> Rules | None:
    active, replicas = configuration.active, configuration.replicas
    if active is None or replicas is None:
        return None
    made = unit(replicas, per_gpu)
    maximum = made.bound if active.holds_one else Share(MILLI_PER_GPU)
    return Rules(active.strategy, made, maximum, made.share)


def _nodes(
    groups: Sequence[Group], main: Group | None, known: Known
) -> tuple[tuple[tuple[str, VgpuStrategy], ...], list[str]]:
    """Say which nodes are shared in which way; where that takes names that are not known, ask for them."""
    strategies = {one.rules.strategy for one in groups if one.rules}
    if main is None or main.rules is None or strategies == {MPS}:
        return (), []
    usual = main.rules.strategy
    others = [one for one in groups if one.rules and one.rules.strategy != usual]
    rest = () if usual == MPS else (("*", usual),)
    entries = tuple((name, one.rules.strategy) for one in others if one.rules for name in one.names)
    if known.nodes is not None:
        return (*entries, *rest), []
    asked = [
        f'{one.rules.strategy} on the nodes of "{one.configuration}" takes an entry of `nodes` for each, by name: '
        f"save the output of {COLUMNS} and name it with --nodes"
        for one in others
        if one.rules
    ]
    return rest, asked


def _about_units(groups: Sequence[Group], per_gpu: int, most: int) -> Iterator[str]:
    inexact = [one.rules.unit for one in groups if one.rules and not one.rules.unit.is_exact]
    if not inexact:
        return
    numbers = sorted({one.rules.unit.replicas for one in groups if one.rules})
    written = " and ".join(map(str, numbers))
    why = (
        f"more than {most} replicas of a GPU"
        if len(numbers) == 1
        else f"{written} replicas, which have no common multiple up to {most}"
    )
    yield (
        f"vgpusPerGpu is one number for the cluster, at most {most}, and there are {why}: {per_gpu} "
        "comes nearest. Take it, write another one, or leave the nodes of one configuration to NVIDIA's plugin"
    )


def _about_drivers(configurations: Sequence[Configuration], per_gpu: int) -> str:
    fewer = vgpus_per_gpu([one.replicas for one in configurations if one.replicas], MPS_CLIENTS_BEFORE_CUDA_13_1)
    rules = dict.fromkeys(made for one in configurations if (made := _rules(one, fewer)))
    told = "; ".join(
        f'one of {one.unit.replicas} replicas is then {one.unit.vgpus}, share.minimum "{one.minimum}" and '
        f'share.maximum "{one.maximum}"'
        for one in rules
    )
    return (
        "do all nodes have a driver with CUDA 13.1 or newer, as nvidia-smi shows it? MPS serves "
        f"{MPS_CLIENTS_BEFORE_CUDA_13_1} clients on a GPU with older ones, and a GPU with vgpusPerGpu {per_gpu} is not "
        f"shared there. Else {fewer} comes nearest: {told}"
    )


def _about_default(known: Known, shared: Sequence[Group]) -> Iterator[str]:
    if known.is_named and not known.has_default and shared:
        yield (
            "which configuration do nodes without the label have? NVIDIA's Helm chart takes config.default, else the "
            "one called default, else the only one; the GPU Operator takes devicePlugin.config.default of its "
            "ClusterPolicy, else none: say --default NAME, or --no-default"
        )


def _about_namespaces(groups: Sequence[Group], main: Group | None) -> Iterator[str]:
    for one in groups:
        if one.rules and main and one.rules != main.rules:
            yield (
                f'which namespaces have pods for the nodes of "{one.configuration}"? NVIDIA\'s plugin decides by node, '
                "gpu-share by namespace: save its policy as <namespace>.yaml for each of them"
            )


def _about_options(options: Mapping[str, Mapping[str, str]]) -> str:
    written = "; ".join(
        f"{name}: {', '.join(f'{key}={value}' for key, value in one.items()) or 'the defaults'}"
        for name, one in options.items()
    )
    return f"the plugin's options are one set for all nodes, and the configurations want different ones ({written})"


def _findings(configurations: Sequence[Configuration], per_gpu: int) -> Iterator[Finding]:
    for one in configurations:
        yield from one.findings
        for replicated in (one.active, one.passive):
            if replicated is not None:
                made = unit(one.replicas, per_gpu) if one.replicas else None
                yield from findings_of(one.name, replicated, made, in_force=replicated is one.active)
