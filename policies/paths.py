"""Paths as the kubelet and container runtimes take them, whatever their slashes and dots."""

from posixpath import normpath


def is_plain(path: str) -> bool:
    """Whether *path* is normal at first sight; a name that begins with a dot is not, though the path may be."""
    return path.startswith("/") and not path.endswith("/") and "//" not in path and "/." not in path


def normal(path: str) -> str:
    """Write a path as the container runtime takes it: from the root, whatever its slashes and dots."""
    if is_plain(path):  # almost every path is; `normpath` takes ten times as long to say so
        return path
    return normpath(f"/{path.lstrip('/')}")


def is_within(path: str, directory: str) -> bool:
    """Whether *path* is *directory* or lies in it; both are normal paths."""
    if not path.startswith(directory):
        return False
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def meet(path: str, other: str) -> bool:
    """Whether one of two normal paths is the other, or lies in it."""
    return is_within(path, other) or is_within(other, path)
