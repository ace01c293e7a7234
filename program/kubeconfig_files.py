"""Which files make up a kubeconfig, and what is in each."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from kubernetes import config

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where libyaml was at hand
_DEEPEST: Final = 100  # of nested values: thousands crash the C loader, and hundreds end the other
_MOST_BYTES: Final = 64 * 1024 * 1024
_LONGEST_NAME: Final = 255  # of a file on Linux


class Entry(msgspec.Struct, frozen=True):
    """Of any kind; only what is chosen must be valid."""

    name: str
    context: dict[str, Any] | None = None
    cluster: dict[str, Any] | None = None
    user: dict[str, Any] | None = None


class File(msgspec.Struct, frozen=True):
    """One of the files."""

    current: str | None = msgspec.field(name="current-context", default=None)
    contexts: tuple[Entry, ...] | None = None
    clusters: tuple[Entry, ...] | None = None
    users: tuple[Entry, ...] | None = None


def paths_of(kubeconfig: Path | None = None, environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Say which files are meant: this one, whatever is in its name, or those that kubectl reads."""
    if kubeconfig:
        return (kubeconfig,)
    listed = environment.get("KUBECONFIG") or "~/.kube/config"
    return tuple(Path(one) for one in listed.split(os.pathsep) if one)


def shown(paths: Sequence[Path]) -> str:
    """Name the files in a sentence; empty for what may be a kubeconfig itself, whose tokens nobody is to see."""
    names = os.pathsep.join(str(one) for one in paths)
    is_long = any(len(part) > _LONGEST_NAME for one in paths for part in one.parts)
    return "" if is_long or not names.isprintable() or set('{"') & set(names) else names


def files_of(paths: Sequence[Path]) -> Iterator[tuple[Path, File]]:
    """
    Read the files that are there and not empty; with each comes the directory by which it names others.

    Raises:
        ConfigException: If one cannot be read, or is invalid YAML.
        ValidationError, ValueError: If one is another document.
    """
    for path in paths:
        try:
            file = path.expanduser()
            content = _content(_read(file))
        except (FileNotFoundError, RuntimeError):  # RuntimeError: nobody knows where home is
            continue
        except OSError as error:
            raise config.ConfigException(f"{_named(path)} cannot be read: {error.strerror}") from None
        except yaml.YAMLError as error:  # which shows the line
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark else ""
            raise config.ConfigException(f"{_named(path)} is not valid YAML{where}") from None
        if content is not None:
            yield file.absolute().parent, msgspec.convert(content, File)


def exist(paths: Sequence[Path]) -> bool:
    """Whether any of the files is there, as far as anybody may know."""
    for path in paths:
        try:
            path.expanduser().lstat()
        except (FileNotFoundError, RuntimeError):
            continue
        except OSError:
            pass
        return True
    return False


def _named(path: Path) -> str:
    return shown([path]) or "a file of KUBECONFIG"


def _read(file: Path) -> bytes:
    """Read a file, which may be a pipe of the shell."""
    with file.open("rb") as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"larger than {_MOST_BYTES // 1024**2} MiB")
    return content


def _content(text: bytes) -> Any:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - the safe one
