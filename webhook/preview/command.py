"""`gpu-share preview`: what the webhook would do with the pods of some files, with no cluster."""

from collections.abc import Sequence

import click
import msgspec

from policies.policy_set import PolicySet
from webhook.preview.objects import UnreadableError
from webhook.preview.output import Output, write
from webhook.preview.pod_security import PodSecurity, SaidBy
from webhook.preview.previewed import preview
from webhook.preview.translated import Origin, translate
from webhook.preview.workloads import Input, read_input


class Rules(msgspec.Struct, frozen=True):
    """By what is decided."""

    shown: str  # where the policies are from
    policies: PolicySet
    unwritten: str = "default"  # the namespace of pods without one
    level: str = ""  # that Pod Security enforces, as the user says
    said_by: SaidBy = lambda _: {}
    notes: tuple[str, ...] = ()  # what is not as it looks, a sentence each


def run(  # noqa: PLR0913 - what the command line says
    inputs: list[tuple[str, str]],
    rules: Rules,
    *,
    namespace: str | None,
    output: Output,
    pod_paths: Sequence[str] = (),
    source: Origin | None = None,
) -> int:
    """
    Preview *inputs*, pairs of a name and a text, on standard output, by *rules*.

    Where they have a *source*, the pods are translated first.

    Returns:
        The exit code: 0 if all is admitted, 1 if a pod is denied, 2 if an input or an object in a list cannot be read,
        or the pods of an object were not found, cannot be translated, or have no place for what is written.
    """
    try:
        read = [read_input(text, name, pod_paths, is_ours=rules.policies.cluster.is_ours) for name, text in inputs]
    except UnreadableError as error:
        click.echo(f"gpu-share: {error}", err=True)
        return 2
    given = _together(read)
    unused = [f"--pod-path {path}: no object has a pod there" for path in pod_paths if path not in given.used_paths]
    if source is not None:
        given = translate(given, source)
    namespaces = {namespace or one.namespace or rules.unwritten for one in given.workloads}
    security = PodSecurity(rules.level, of_cluster=rules.said_by(namespaces))
    pods = preview(given, rules.policies, namespace, unwritten=rules.unwritten, security=security)
    unclear = [*given.unknown, *unused, *(f"{one.title}: {one.unclear}" for one in pods if one.unclear)]
    if output == "patch" and len(pods) != 1:
        unclear.append(f"-o patch takes one pod, got {len(pods)}: give one, or use -o yaml")
    else:
        unclear += write(given, pods, output, rules.shown)
        for sentence in rules.notes if pods else ():
            click.echo(f"gpu-share: warning: {sentence}", err=True)
    for sentence in unclear:
        click.echo(f"gpu-share: {sentence}", err=True)
    if unclear:
        return 2
    return 1 if any(one.is_denied for one in pods) else 0


def _together(read: Sequence[Input]) -> Input:
    return Input(
        documents=[document for one in read for document in one.documents],
        workloads=[workload for one in read for workload in one.workloads],
        unknown=[sentence for one in read for sentence in one.unknown],
        used_paths={path for one in read for path in one.used_paths},
    )
