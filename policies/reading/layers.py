"""One policy file to a layer of fields, and layers to the policy in force."""

import re
from collections.abc import Collection, Container, Iterator, Sequence
from itertools import chain
from typing import Any, TypedDict, TypeVar

import msgspec

from policies.cluster import NAMESPACE_PATTERN, Cluster
from policies.contract import DEFAULT_PIPE_DIRECTORY, PARTITION
from policies.device_names import device_name, is_model
from policies.errors import Problem, quoted
from policies.host_paths import conflicts
from policies.placement import Placement
from policies.policy import EffectivePolicy, Policy, Source
from policies.reading.document import DocumentError, Node, read
from policies.reading.faults import Fault, decode_share, faults, is_section, is_valid
from policies.reading.told import MOST_OF_A_FILE, first_of
from policies.share import Headroom, Share

CLUSTER_FILE = "_cluster.yaml"
DEFAULT_FILE = "_default.yaml"

_NAMESPACE = re.compile(NAMESPACE_PATTERN)
_WITHOUT_ENDING = re.compile(rf"(_cluster|_default|{NAMESPACE_PATTERN})(\.ya?ml.+)?")
_SECTIONS = frozenset(field.encode_name for field in msgspec.structs.fields(Policy) if is_section(field.type))

T = TypeVar("T")


class Layer(msgspec.Struct, frozen=True, gc=False):
    """What one file says: plain values, and the line of each field."""

    file: str
    values: dict[str, Any]
    lines: dict[str, int]  # by dotted field

    def convert(self, to: type[T]) -> T:
        """Build the typed value; every field has passed already."""
        return msgspec.convert(self.values, to, dec_hook=decode_share)


def is_namespace(name: str) -> bool:
    """Whether Kubernetes could have a namespace called *name*."""
    return _NAMESPACE.fullmatch(name) is not None


def owner_of(name: str, among: Container[str]) -> str | None:
    """
    Say for what a file counts, by the name it should have: `_cluster.yaml`, `_default.yaml` or `<namespace>.yaml`.

    A name that was meant to be one of them, such as `team.yml`, counts for it, but for `_cluster.yaml` and
    `_default.yaml` only if those are not *among* the files: who may write a namespace's file must not stop everybody's.
    None if it counts for nothing.
    """
    stem = name.rpartition(".")[0].lower()
    file = f"{stem}.yaml"
    if file in (CLUSTER_FILE, DEFAULT_FILE):
        return file if name == file or file not in among else None
    return file if is_namespace(stem) else None


def lacks_ending(name: str) -> bool:
    """Whether the name of a file that has not a policy file's ending is one but for that: `team`, `team.yaml.txt`."""
    return _WITHOUT_ENDING.fullmatch(name) is not None


def problem_of_name(name: str) -> Problem | None:
    """Say what is wrong with a policy file's name, if anything is."""
    if name in (CLUSTER_FILE, DEFAULT_FILE) or (name.endswith(".yaml") and is_namespace(name[: -len(".yaml")])):
        return None
    message = f"expected {CLUSTER_FILE}, {DEFAULT_FILE} or <namespace>.yaml: rename or remove the file"
    return Problem(name, 0, "", message)


def read_layer(file: str, text: str, problems: list[Problem], *, most: int = MOST_OF_A_FILE) -> Layer:
    """Read one file; what is wrong with it is added to *problems*, at most about so many, and left out of the layer."""
    try:
        root = read(text)
    except DocumentError as error:
        problems.append(Problem(file, error.line, "", error.message))
        return Layer(file=file, values={}, lines={})
    layer = Layer(file=file, values={}, lines={})
    if root.value is None:
        return layer
    model: type[msgspec.Struct] = Cluster if file == CLUSTER_FILE else Policy
    before = len(problems)
    if not (model is Policy and is_valid(root.value)):
        found = (Problem(file, fault.line, fault.field, fault.message) for fault in faults(root, model))
        problems.extend(first_of(found, most))
    if len(problems) == before:
        found = (Problem(file, fault.line, fault.field, fault.message) for fault in _faults_of_frameworks(root))
        problems.extend(first_of(found, most))
    if len(problems) == before:
        layer.values.update(root.value)
        layer.lines.update(_lines(root))
    return layer


def _faults_of_frameworks(root: Node) -> Iterator[Fault]:
    if any("constants" in one.fields for one in _frameworks(root)):
        from policies.reading.constants import faults_of_constants  # noqa: PLC0415 - 1 MiB that most nodes do not need

        yield from faults_of_constants(root)
    if any("memory" in one.fields or "optionPrefixes" in one.fields for one in _frameworks(root)):
        from policies.reading.shared_names import faults_of_shared_names  # noqa: PLC0415 - likewise

        yield from faults_of_shared_names(root)


def _frameworks(root: Node) -> list[Node]:
    """Return the additions to the catalogue; in a namespace's file there are none."""
    return root.fields["frameworks"].items if "frameworks" in root.fields else []


class Judging(TypedDict):
    """What the other files are judged by; see `effective`."""

    pipe_directory: str | None
    partitions: frozenset[str] | None
    models: frozenset[str] | None


def judging(cluster: Cluster | None) -> Judging:
    """Say what *cluster* judges the other files by; nothing where nobody knows it."""
    if cluster is None:
        return Judging(pipe_directory=None, partitions=None, models=None)
    return {
        "pipe_directory": cluster.mps.pipe_directory,
        "partitions": frozenset(cluster.partitions),
        "models": frozenset(cluster.models),
    }


def effective(  # noqa: PLR0913 - all that _cluster.yaml says of a policy
    layers: Sequence[Layer],
    problems: list[Problem],
    *,
    pipe_directory: str | None = DEFAULT_PIPE_DIRECTORY,
    partitions: Collection[str] | None = (),
    models: Collection[str] | None = (),
    most: int = MOST_OF_A_FILE,
) -> EffectivePolicy:
    """
    Lay *layers* over the built-in defaults, the last on top; about so many conflicts are added to *problems*.

    *pipe_directory*, the names of *partitions*, and the *models* that are devices are those of `_cluster.yaml`; nothing
    is judged by what is None, since nobody knows it.
    """
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for layer in layers:
        for key, value in layer.values.items():
            values[key] = {**values.get(key, {}), **value} if key in _SECTIONS else value
        sources.update({field: Source(layer.file, line) for field, line in layer.lines.items()})
    policy = msgspec.convert(values, Policy, dec_hook=decode_share)
    file = layers[-1].file if layers else ""
    name = file.removesuffix(".yaml") or "built-in"
    made = EffectivePolicy(file=file, name=name, policy=policy, places=policy.placement != Placement(), sources=sources)
    found = chain(
        _conflicts(made),
        _unknown_partition(made, partitions),
        _unknown_devices(made, models),
        _conflicts_of_paths(made, pipe_directory),
    )
    problems.extend(first_of(found, most))
    return made


def _conflicts(made: EffectivePolicy) -> Iterator[Problem]:
    share, headroom = made.policy.share, made.policy.memory.headroom
    if share.minimum > share.maximum:
        yield _conflict(made, ("share.minimum", share.minimum), "is above", ("share.maximum", share.maximum))
    if share.pod_maximum is not None and share.pod_maximum < share.minimum:
        yield _conflict(made, ("share.podMaximum", share.pod_maximum), "is below", ("share.minimum", share.minimum))
    if headroom >= share.minimum and made.source("share.minimum").file:
        relation = "leaves nothing of the smallest share,"
        yield _conflict(made, ("memory.headroom", headroom), relation, ("share.minimum", share.minimum))


def _conflicts_of_paths(made: EffectivePolicy, pipe_directory: str | None) -> Iterator[Problem]:
    source = made.source("hostPaths")
    if source.file == made.file:  # else the fault is of another file
        for said in conflicts(made.policy.host_paths, pipe_directory=pipe_directory):
            yield Problem(made.file, source.line, "hostPaths", said)


def _unknown_partition(made: EffectivePolicy, partitions: Collection[str] | None) -> Iterator[Problem]:
    policy = made.policy
    if policy.strategy != PARTITION:
        return
    known = f", known are {', '.join(sorted(partitions))}" if partitions else ", there are none"
    if policy.partition is None:
        message = f"partition needs the name of partitions in {CLUSTER_FILE}{'' if partitions is None else known}"
        yield _blamed(made, "strategy", f"{message}: add partition")
    elif partitions is not None and policy.partition not in partitions:
        message = f"{CLUSTER_FILE} has no partitions of the name {quoted(policy.partition)}{known}"
        yield _blamed(made, "partition", f"{message}: correct one of the two")


def _unknown_devices(made: EffectivePolicy, models: Collection[str] | None) -> Iterator[Problem]:
    for device in made.policy.shared_devices:
        if models is not None and is_model(device) and device not in models:
            known = f"known are {', '.join(sorted(map(device_name, models)))}" if models else "there are none"
            message = f"nodes of {CLUSTER_FILE} have no device {device_name(device)}, {known}: correct one of the two"
            yield _blamed(made, "devices", message)


def _blamed(made: EffectivePolicy, field: str, message: str) -> Problem:
    source = made.source(field)
    return Problem(source.file or made.file, source.line, field, message)


def _conflict(
    made: EffectivePolicy, one: tuple[str, Share | Headroom], relation: str, other: tuple[str, Share | Headroom]
) -> Problem:
    """Blame the field that was written last, in the file on top, and say of the other one which it is, and where."""
    first, second = made.source(one[0]), made.source(other[0])
    if first.file == made.file or second.file != made.file:
        source, blamed, said = first, one[0], f"{one[1]} {relation} {other[0]} {other[1]} ({second})"
    else:
        source, blamed, said = second, other[0], f"{one[0]} {one[1]} ({first}) {relation} {other[1]}"
    return Problem(source.file, source.line, blamed, f"{said}: change one of the two")


def _lines(root: Node) -> dict[str, int]:
    lines = {}
    for key, node in root.fields.items():
        lines[key] = node.key_line
        if key in _SECTIONS:
            lines.update({f"{key}.{inner}": child.key_line for inner, child in node.fields.items()})
    return lines
