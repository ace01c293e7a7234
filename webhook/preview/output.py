"""How `gpu-share preview` writes what would become of pods: in sentences, as a diff, as YAML or as a JSON Patch."""

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

import click
import msgspec
import yaml

from policies.api_server_check import API_SERVER_POLICY
from policies.grant import Denied, Grant
from program.terminal import for_output
from webhook.preview.explain import explain
from webhook.preview.plain_values import STRING, plain_tag
from webhook.preview.pod_security import said_of_written
from webhook.preview.previewed import Previewed
from webhook.preview.reaching import reach
from webhook.preview.shapes import Fields
from webhook.preview.workloads import Input

Output = Literal["explain", "diff", "yaml", "patch", "translated"]

_BY_API_SERVER = f"The pod is denied by the ValidatingAdmissionPolicy {API_SERVER_POLICY} of the API server: "


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # which one depends on the machine
    """Puts in quotes what any reader takes for no string: others read 1e-4 and y in their own ways."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        tag = str(super().resolve(kind, value, implicit))
        return plain_tag(value) if tag == STRING and implicit[0] else tag


def show_explained(pods: list[Previewed]) -> Iterator[str]:
    """Yield the decisions in sentences."""
    for index, one in enumerate(pods):
        if index:
            yield ""
        yield f"{one.title}: {_verdict(one)}"
        if one.workload.shape.note:
            yield f"  The pod is previewed {one.workload.shape.note}."
        yield from (f"  {sentence}" for sentence in one.workload.became)
        yield from (f"  Warning: {sentence}." for sentence in one.earlier)
        if one.unclear:
            yield f"  {one.unclear}."
        elif one.denied_after:
            yield f"  {_BY_API_SERVER}{one.denied_after}"
            yield from (f"  Warning: {sentence}" for sentence in _warnings(one))
        else:
            yield from (f"  {line}" for line in explain(one.decision, one.made))
        yield from (f"  Warning: {sentence}." for sentence in (one.otherwise,) if sentence)
        yield from (f"  Warning: {sentence}{'' if sentence.endswith('?') else '.'}" for sentence in one.oversights)


def _verdict(one: Previewed) -> str:
    if one.unclear:
        return "not known"
    if one.denied_after:
        return "denied by the API server"
    match one.decision:
        case Grant():
            return "granted"
        case Denied(_, denials):
            return ", ".join(["denied", *dict.fromkeys(deny.code for deny in denials)])
        case _:
            return "untouched"


def _diff(pods: list[Previewed]) -> Iterator[str]:
    """Yield the changes as unified diffs of YAML."""
    for one in pods:
        before, after = (_dump(pod).splitlines() for pod in (one.workload.pod, one.patched))
        yield from difflib.unified_diff(
            before, after, f"{one.title} as written", f"{one.title} as admitted", "", "", 3, ""
        )


def _written(pods: list[Previewed], *, admitted: bool) -> Iterator[str]:
    """
    Put the pods as *admitted*, or as they are translated, into their objects.

    Yields:
        Why one of them is not written, as a sentence.
    """
    if not admitted:
        for one in pods:
            yield from _put_back(one, one.workload.sent)
        return
    for _, of_object in groupby(pods, lambda one: id(one.workload.document)):
        together = [*of_object]
        reaching = reach(together)
        for one in together:
            if not one.unwritable:
                yield from _put_back(one, *reaching.without(one))
            elif not one.unclear:  # which is said already
                yield f"{one.title}: {one.unwritable}"


def _put_back(one: Previewed, pod: Fields, *left_out: str) -> Iterator[str]:
    """Put *pod* into its object; yield why it is not written, as a sentence."""
    replaced = one.workload.replace_pod(pod)
    kind = one.workload.kind
    for text in (
        *(f"{field} has no place in a {kind}: the webhook adds it to the pod" for field in replaced.lost),
        *(f"{field} stands elsewhere in the {kind} too: the webhook changes it" for field in replaced.kept),
        *replaced.said,
        *left_out,
    ):
        click.echo(f"gpu-share: {one.title}: {text}", err=True)
    yield from (f"{one.title}: {sentence}" for sentence in replaced.unwritable)


def _yaml(given: Input) -> Iterator[str]:
    """Yield the documents with the pods that were put into them; what has no pod, and what is denied, as written."""
    for index, document in enumerate(given.documents):
        if index:
            yield "---"
        yield _dump(document).rstrip("\n")


def _patch(pods: list[Previewed]) -> Iterator[str]:
    """Yield the JSON Patch of the one pod."""
    (one,) = pods
    yield msgspec.json.format(msgspec.json.encode(one.made), indent=2).decode() if one.made else "[]"


def _dump(value: object) -> str:
    """Write YAML in the order of the object."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def _explained(given: Input, pods: list[Previewed], source: str) -> Iterator[str]:
    if pods:
        yield f"Policies: {source}"
        yield from show_explained(pods)
    elif not given.unknown:
        yield "No pod and no pod template here."


def write(given: Input, pods: list[Previewed], output: Output, source: str) -> list[str]:
    """
    Write the pods of *given* to standard output; *source* says whose policies were used.

    Returns:
        Sentences about pods that are not as they will run in what was written.
    """
    if output == "explain":
        for line in for_output(_explained(given, pods, source)):
            click.echo(line)
        return []
    if pods:
        click.echo(f"gpu-share: policies: {source}", err=True)
    _warn(pods)
    written = said_of_written([(one.namespace, one.decision, one.restricted) for one in pods])
    if written and output != "translated":
        click.echo(f"gpu-share: {written}", err=True)
    lines: Iterable[str]
    unwritten: list[str] = []
    if output == "diff":
        lines = _diff(pods)
    elif output in ("yaml", "translated"):
        unwritten = [*_written(pods, admitted=output == "yaml")]
        lines = _yaml(given)
    else:
        lines = () if pods[0].is_denied or pods[0].unclear else _patch(pods)
    for line in lines:
        click.echo(line)
    return unwritten


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
        if one.denied_after:
            click.echo(f"gpu-share: {one.title}: {_BY_API_SERVER}{one.denied_after}", err=True)
        for warning in (*_warnings(one), *((one.otherwise,) if one.otherwise else ()), *one.oversights):
            click.echo(f"gpu-share: {one.title}: warning: {warning}", err=True)


def _warnings(one: Previewed) -> tuple[str, ...]:
    """Return those of the webhook, which reach whoever creates a pod even if the API server denies it afterwards."""
    return () if isinstance(one.decision, Denied) else one.decision.warnings
