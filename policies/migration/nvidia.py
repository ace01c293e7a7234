"""NVIDIA's configuration to gpu-share's, from text to text: what `gpu-share policy import` does."""

from policies.errors import PolicyError, Problem, quoted
from policies.migration.configurations import configurations_in
from policies.migration.imported import Imported, Known, translate
from policies.migration.nodes import read_nodes
from policies.migration.nvidia_file import read_configuration

NO_DEFAULT = ""  # nodes without the label have no configuration


def import_nvidia(
    text: str, file: str, *, nodes: tuple[str, str] | None = None, default: str | None = None
) -> Imported:
    """
    Translate the configuration, or all those, in *text*.

    Args:
        text: Of the file.
        file: Its name, for messages.
        nodes: The name and text of a file with the configuration of each node, if there is one.
        default: The configuration of nodes without the label; NO_DEFAULT if they have none, None if it is not said.

    Raises:
        PolicyError: If NVIDIA's plugin would not start with one of them, or a file cannot be read, with all problems.
    """
    found = configurations_in(text, file)
    problems: list[Problem] = []
    read = [read_configuration(one, file, problems) for one in found.texts]
    names = [one.name for one in found.texts]
    if default and default not in names:
        known_names = ", ".join(names[:10]) or "it has none"
        message = f"{quoted(default)} is none of the configurations: name one of {known_names}"
        problems.append(
            Problem("--default", 0, "", message if found.are_named else "the file has no names: leave it out")
        )
    if nodes and not found.are_named:
        problems.append(Problem("--nodes", 0, "", "the file has no names that nodes could choose: leave it out"))
    if problems:
        raise PolicyError(tuple(problems))
    chosen = default if default is not None else found.default
    known = Known(
        is_named=found.are_named,
        default=chosen or None,
        has_default=chosen is not None,
        nodes=read_nodes(nodes[1], nodes[0], names) if nodes else None,
    )
    return translate(read, known)
