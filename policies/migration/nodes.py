"""Which node has which configuration, out of two columns of kubectl: its name, and the value of its label."""

import re
from collections.abc import Collection
from typing import Final

from policies.errors import PolicyError, Problem, quoted

CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
COLUMNS: Final = (
    "kubectl get nodes -l nvidia.com/gpu.present=true -o "
    r"custom-columns='NAME:.metadata.name,CONFIG:.metadata.labels.nvidia\.com/device-plugin\.config'"
)

_NODE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,98}[a-z0-9])?", re.ASCII)  # as long as `nodes` of _cluster.yaml takes it
_WITHOUT_LABEL = "<none>"


def read_nodes(text: str, file: str, configurations: Collection[str]) -> dict[str, str | None]:
    """
    Read the configuration of each node, None for nodes without the label.

    Raises:
        PolicyError: If a line is not a node and one of *configurations*, with every line that is not; if there is none.
    """
    nodes: dict[str, str | None] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words == ["NAME", "CONFIG"]:
            continue
        if len(words) != 2 or not _NODE.fullmatch(words[0]):  # noqa: PLR2004 - two columns
            got = quoted(line.strip(), 60)
            message = f"expected the name of a node, at most 100 characters, and its configuration, got {got}"
            problems.append(Problem(file, number, "", f"{message}: save the output of {COLUMNS}"))
        elif words[1] == _WITHOUT_LABEL:
            nodes[words[0]] = None
        elif words[1] in configurations:
            nodes[words[0]] = words[1]
        else:
            message = f"{quoted(words[1], 63)} is none of the configurations: NVIDIA's plugin keeps its last one there"
            problems.append(Problem(file, number, words[0], f"{message}; correct the node's label"))
    if not nodes and not problems:
        problems.append(Problem(file, 0, "", f"no node is in it: save the output of {COLUMNS}, or leave out --nodes"))
    if problems:
        raise PolicyError(tuple(problems))
    return nodes
