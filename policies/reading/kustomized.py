"""What kustomize is told to make of a directory of policy files, and where the directory has other ones."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from policies.errors import Problem, quoted
from policies.reading.document import DocumentError, Node, read
from policies.reading.told import MOST_OF_A_FILE, first_of

_FIELD = "configMapGenerator.files"
_ELSEWHERE = ("http://", "https://")  # kustomize fetches such a file


class Kustomization(msgspec.Struct, frozen=True, kw_only=True):
    """kustomize's file in a directory."""

    name: str
    text: str
    has_file: Callable[[str], bool]  # whether the directory has a file at this path


def listed_otherwise(kustomization: Kustomization, files: Sequence[str]) -> Iterator[Problem]:
    """
    Yield which of the *files* kustomize does not put into a ConfigMap, and which it is told to and are not there.

    Of many of them some, and that there are more.
    """
    yield from first_of(_listed_otherwise(kustomization, files), MOST_OF_A_FILE)


def _listed_otherwise(kustomization: Kustomization, files: Sequence[str]) -> Iterator[Problem]:
    try:
        generators = read(kustomization.text).fields.get("configMapGenerator")
    except DocumentError:
        return  # kustomize says what is wrong with it
    if generators is None or not all(one.fields for one in generators.items) or not generators.items:
        return
    lists = [one.fields["files"] for one in generators.items if "files" in one.fields]
    line = lists[0].key_line if lists else generators.key_line
    entries = [entry for one in lists for entry in one.items]
    listed = [_listed(entry) for entry in entries]
    keys: dict[str, list[str]] = {}
    for path, key in listed:
        keys.setdefault(path, []).append(key)
    for file in files:
        names = keys.get(file, [])
        if not names:
            message = f"{file} is not listed, so no cluster gets it: add the line `- {file}`"
            yield Problem(kustomization.name, line, _FIELD, message)
        elif file not in names:
            message = f"a cluster gets {file} under the name {quoted(names[0])}: write the line as `- {file}`"
            yield Problem(kustomization.name, line, _FIELD, message)
    for entry, (path, _) in zip(entries, listed, strict=True):
        is_path = isinstance(entry.value, str) and not path.startswith(_ELSEWHERE)
        if is_path and not kustomization.has_file(path):
            message = f"there is no file {quoted(path, 255)}, so kustomize rejects it all: write it, or remove the line"
            yield Problem(kustomization.name, entry.line, _FIELD, message)


def _listed(entry: Node) -> tuple[str, str]:
    """The file that an entry means, and its name in the ConfigMap: `a.yaml` and `./a.yaml` are the same."""
    key, _, path = str(entry.value).rpartition("=")
    path = path.removeprefix("./")
    return path, key or path.rpartition("/")[2]
