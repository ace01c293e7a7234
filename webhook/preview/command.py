"""`gpu-share preview`: what the webhook would do with the pods of some files, with no cluster."""

from collections.abc import Sequence

import click

from policies.policy_set import PolicySet
from webhook.preview.objects import UnreadableError
from webhook.preview.output import Output, write
from webhook.preview.previewed import preview
from webhook.preview.translated import Origin, translate
from webhook.preview.workloads import Input, read_input


def run(  # noqa: PLR0913 - what the command line says
    inputs: list[tuple[str, str]],
    rules: tuple[str, PolicySet],
    *,
    namespace: str | None,
    output: Output,
    pod_paths: Sequence[str] = (),
    source: Origin | None = None,
    unwritten: str = "default",
) -> int:
    """
    Preview *inputs*, pairs of a name and a text, on standard output, by *rules*: their source, and they.

    Where they have a *source*, the pods are translated first. Those without a namespace are in *unwritten*.

    Returns:
        The exit code: 0 if all is admitted, 1 if a pod is denied, 2 if an input or an object in a list cannot be read,
        or the pods of an object were not found, or cannot be translated.
    """
    try:
        read = [read_input(text, name, pod_paths) for name, text in inputs]
    except UnreadableError as error:
        click.echo(f"gpu-share: {error}", err=True)
        return 2
    given = _together(read)
    unused = [f"--pod-path {path}: no object has a pod there" for path in pod_paths if path not in given.used_paths]
    if source is not None:
        given = translate(given, source)
    shown, policies = rules
    pods = preview(given, policies, namespace, unwritten=unwritten)
    unclear = [*given.unknown, *unused]
    if output == "patch" and len(pods) != 1:
        unclear.append(f"-o patch takes one pod, got {len(pods)}: give one, or use -o yaml")
    else:
        write(given, pods, output, shown)
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
