"""What the webhook would do with the pods of some files, with no cluster: `gpu-share preview`."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import jsonpatch
import msgspec
import yaml

from policies.decision import decide
from policies.grant import Decision, Denied, Grant
from policies.policy_set import PolicySet
from policies.reasons import reasons
from program.terminal import for_output
from webhook.patch import Operation, operations
from webhook.preview.earlier import earlier_grants
from webhook.preview.explain import explain
from webhook.preview.objects import UnreadableError
from webhook.preview.translated import Origin, translate
from webhook.preview.workloads import Input, Workload, read_input, shown_name

Output = Literal["explain", "diff", "yaml", "patch", "translated"]

_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Previewed(msgspec.Struct):
    """One pod, and what became of it."""

    workload: Workload
    namespace: str
    decision: Decision
    made: list[Operation]
    patched: dict[str, Any]
    earlier: tuple[str, ...] = ()  # what it was granted before vgpusPerGpu was changed

    @property
    def pod(self) -> dict[str, Any]:
        """The pod as written."""
        return self.workload.pod

    @property
    def title(self) -> str:
        """How messages call it."""
        return shown_name(self.workload, self.namespace)


class SentExample(msgspec.Struct, frozen=True):
    """A pod as the API server sends it, and the decision on it in sentences."""

    title: str
    namespace: str
    pod: dict[str, Any]
    why: tuple[str, ...]


def preview(given: Input, policies: PolicySet, namespace: str | None) -> list[Previewed]:
    """Decide on every pod of an input; *namespace* replaces those written in it."""
    return [_preview(workload, policies, namespace) for workload in given.workloads]


def patch_pod(pod: dict[str, Any], made: list[Operation]) -> dict[str, Any]:
    """Apply operations as the API server does."""
    patched: dict[str, Any] = jsonpatch.apply_patch(pod, msgspec.to_builtins(made))
    return patched


def _preview(workload: Workload, policies: PolicySet, namespace: str | None) -> Previewed:
    place = namespace or workload.namespace or "default"
    decision = decide(workload.parsed, place, policies)
    made = operations(workload.parsed, decision) if isinstance(decision, Grant) else []
    before = workload.pod if isinstance(decision, Denied) else workload.sent
    earlier = tuple(earlier_grants(workload.pod, policies.cluster))
    return Previewed(workload, place, decision, made, patch_pod(before, made), earlier)


def examples(directory: Path, policies: PolicySet) -> Iterator[SentExample]:
    """
    Read the pods of a directory's files as the API server would send them to the webhook.

    Raises:
        UnreadableError: If a file cannot be read.
    """
    for file in sorted(directory.glob("*.yaml")):
        for one in preview(read_input(file.read_text(), file.name), policies, None):
            metadata: dict[str, Any] = {"namespace": one.namespace, **one.pod.get("metadata", {})}
            if one.workload.kind != "Pod":
                metadata["generateName"] = f"{one.workload.name}-"
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": one.pod["spec"]}
            yield SentExample(one.title, one.namespace, pod, tuple(reasons(one.decision)))


def show_explained(pods: list[Previewed]) -> Iterator[str]:
    """Yield the decisions in sentences."""
    for index, one in enumerate(pods):
        if index:
            yield ""
        match one.decision:
            case Grant():
                verdict = "granted"
            case Denied(_, denials):
                verdict = ", ".join(["denied", *dict.fromkeys(deny.code for deny in denials)])
            case _:
                verdict = "untouched"
        yield f"{one.title}: {verdict}"
        if one.workload.shape.note:
            yield f"  The pod is previewed {one.workload.shape.note}."
        yield from (f"  {sentence}" for sentence in one.workload.became)
        yield from (f"  Warning: {sentence}." for sentence in one.earlier)
        yield from (f"  {line}" for line in explain(one.decision, one.made))
        yield from (
            f"  Warning: {sentence}{'' if sentence.endswith('?') else '.'}" for sentence in one.workload.oversights
        )


def show_diff(pods: list[Previewed]) -> Iterator[str]:
    """Yield the changes as unified diffs of YAML."""
    for one in pods:
        before, after = (dump(pod).splitlines() for pod in (one.workload.pod, one.patched))
        yield from difflib.unified_diff(
            before, after, f"{one.title} as written", f"{one.title} as admitted", "", "", 3, ""
        )


def show_yaml(given: Input, pods: list[Previewed], *, admitted: bool) -> Iterator[str]:
    """
    Yield the documents with their pods as *admitted*; what has no pod, and what is denied, as written.

    Else with their pods as they are translated.
    """
    for one in pods:
        for field in one.workload.replace_pod(one.patched if admitted else one.workload.sent):
            text = f"{field} has no place in a {one.workload.kind}: the webhook adds it to the pod"
            click.echo(f"gpu-share: {one.title}: {text}", err=True)
    for index, document in enumerate(given.documents):
        if index:
            yield "---"
        yield dump(document).rstrip("\n")


def show_patch(pods: list[Previewed]) -> Iterator[str]:
    """Yield the JSON Patch of the one pod."""
    (one,) = pods
    yield msgspec.json.format(msgspec.json.encode(one.made), indent=2).decode() if one.made else "[]"


def dump(value: object) -> str:
    """Write YAML in the order of the object."""
    text: str = yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120)
    return text


def run(  # noqa: PLR0913 - what the command line says
    inputs: list[tuple[str, str]],
    rules: tuple[str, PolicySet],
    *,
    namespace: str | None,
    output: Output,
    pod_paths: Sequence[str] = (),
    source: Origin | None = None,
) -> int:
    """
    Preview *inputs*, pairs of a name and a text, on standard output, by *rules*: their source, and they.

    Where they have a *source*, the pods are translated first.

    Returns:
        The exit code: 0 if all is admitted, 1 if a pod is denied, 2 if an input cannot be read or the pods of an object
        were not found, or cannot be translated.
    """
    try:
        read = [read_input(text, name, pod_paths) for name, text in inputs]
    except UnreadableError as error:
        click.echo(f"gpu-share: {error}", err=True)
        return 2
    given = Input(
        documents=[document for one in read for document in one.documents],
        workloads=[workload for one in read for workload in one.workloads],
        unknown=[sentence for one in read for sentence in one.unknown],
        used_paths={path for one in read for path in one.used_paths},
    )
    unused = [f"--pod-path {path}: no object has a pod there" for path in pod_paths if path not in given.used_paths]
    if source is not None:
        given = translate(given, source)
    shown, policies = rules
    pods = preview(given, policies, namespace)
    unclear = [*given.unknown, *unused]
    if output == "patch" and len(pods) != 1:
        unclear.append(f"-o patch takes one pod, got {len(pods)}: give one, or use -o yaml")
    else:
        _print(given, pods, output, shown)
    for sentence in unclear:
        click.echo(f"gpu-share: {sentence}", err=True)
    if unclear:
        return 2
    return 1 if any(isinstance(one.decision, Denied) for one in pods) else 0


def _explained(given: Input, pods: list[Previewed], source: str) -> Iterator[str]:
    if pods:
        yield f"Policies: {source}"
        yield from show_explained(pods)
    elif not given.unknown:
        yield "No pod and no pod template here."


def _print(given: Input, pods: list[Previewed], output: Output, source: str) -> None:
    if output == "explain":
        for line in for_output(_explained(given, pods, source)):
            click.echo(line)
        return
    if pods:
        click.echo(f"gpu-share: policies: {source}", err=True)
    _warn(pods)
    lines: Iterable[str]
    if output == "diff":
        lines = show_diff(pods)
    elif output in ("yaml", "translated"):
        lines = show_yaml(given, pods, admitted=output == "yaml")
    else:
        lines = () if isinstance(pods[0].decision, Denied) else show_patch(pods)
    for line in lines:
        click.echo(line)


def _warn(pods: list[Previewed]) -> None:
    """Say on standard error what the explanation says of denials and warnings."""
    for one in pods:
        for sentence in one.workload.became:
            click.echo(f"gpu-share: {one.title}: {sentence}", err=True)
        for sentence in one.earlier:
            click.echo(f"gpu-share: {one.title}: warning: {sentence}", err=True)
        if isinstance(one.decision, Denied):
            for deny in one.decision.reasons:
                click.echo(f"gpu-share: {one.title}: denied with {deny.code}: {deny.message}", err=True)
        warnings = () if isinstance(one.decision, Denied) else one.decision.warnings
        for warning in (*warnings, *one.workload.oversights):
            click.echo(f"gpu-share: {one.title}: warning: {warning}", err=True)
