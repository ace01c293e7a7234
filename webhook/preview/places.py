"""Where something stands in an object: paths such as `spec.tasks.*.template`, through values and YAML nodes."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from policies.contract import (
    CONTAINER_ANNOTATION_PREFIX,
    DEVICE_ANNOTATION,
    FRAMEWORK_ANNOTATION,
    FRAMEWORK_ANNOTATION_PREFIX,
    GRANT_ANNOTATION,
    SHARE_ANNOTATION,
    SHARE_ANNOTATION_ALIAS,
)
from policies.errors import quoted
from webhook.preview.objects import child, children

PATH = re.compile(r"[A-Za-z0-9_-]+(\.([A-Za-z0-9_-]+|\*))*")
# The annotations of a request: these, and one for each container.
_REQUESTS = (SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS, FRAMEWORK_ANNOTATION, DEVICE_ANNOTATION)
PER_CONTAINER = (CONTAINER_ANNOTATION_PREFIX, FRAMEWORK_ANNOTATION_PREFIX)

_OF_CONTAINERS = frozenset({"args", "command", "env", "envFrom", "ports", "resources", "volumeMounts"})

Step = str | int


class Found(msgspec.Struct, frozen=True):
    """A mapping in an object, and where it stands."""

    steps: tuple[Step, ...]
    value: dict[str, Any]
    node: yaml.Node

    @property
    def path(self) -> str:
        """As messages write it: `spec.tasks[0].template`."""
        return written(self.steps)


def written(steps: tuple[Step, ...]) -> str:
    """Write steps as a path."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in steps)
    return "".join(parts).removeprefix(".")


def pattern(steps: tuple[Step, ...]) -> str:
    """Write steps as a path with `*` for each item of a list, as `--pod-path` takes it."""
    return ".".join("*" if isinstance(step, int) else _shown(step) for step in steps)


def _shown(key: str) -> str:
    return quoted(key, 80)[1:-1]


def dotted(steps: tuple[Step, ...]) -> str:
    """Write steps as the path of this one place."""
    return ".".join(map(str, steps))


def mappings_at(document: dict[str, Any], node: yaml.Node, path: str, nested: tuple[str, ...] = ()) -> Iterator[Found]:
    """
    Yield the mappings that *path* names; `*` is each item of a list and each value of a mapping.

    Behind each come those that the paths *nested* name in it, and in them.
    """
    yield from _mappings_at(Found((), document, node), path, nested)


def _mappings_at(outer: Found, path: str, nested: tuple[str, ...]) -> Iterator[Found]:
    waiting: list[tuple[tuple[Step, ...], Any, yaml.Node]] = [(outer.steps, outer.value, outer.node)]
    for name in path.split(".") if path else ():
        waiting = [inner for steps, value, at in waiting for inner in _inner(steps, value, at, name)]
    for found in (Found(*one) for one in waiting if isinstance(one[1], dict)):
        yield found
        for inner_path in nested:
            yield from _mappings_at(found, inner_path, nested)


def _inner(
    steps: tuple[Step, ...], value: Any, node: yaml.Node, name: str
) -> Iterator[tuple[tuple[Step, ...], Any, yaml.Node]]:
    if isinstance(value, dict) and name == "*":
        nodes = children(node)
        yield from (((*steps, step), inner, nodes.get(step, node)) for step, inner in value.items())
        return
    names: list[Step] = []
    if isinstance(value, dict):
        names = [name] if name in value else []
    elif isinstance(value, list):
        names = [place for place in range(len(value)) if name in ("*", str(place))]
    for step in names:
        yield (*steps, step), value[step], child(node, step) or node


def requests_in(value: Any, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], dict[str, Any], str]]:
    """Yield each request or grant in any `annotations` of an object: the place of the mapping, itself, and the key."""
    for step, inner in _items(value):
        if step == "annotations" and isinstance(inner, dict):
            yield from (((*steps, step), inner, key) for key in inner if key == GRANT_ANNOTATION or is_request(key))
        yield from requests_in(inner, (*steps, step))


def texts_in(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the keys in all `annotations` and `labels` of an object, each with which of the two it is in."""
    for step, inner in _items(value):
        if step in ("annotations", "labels") and isinstance(inner, dict):
            yield from ((str(step), str(key)) for key in inner)
        else:
            yield from texts_in(inner)


def containers_in(value: Any, steps: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the place of each list of containers in an object."""
    for step, inner in _items(value):
        here = (*steps, step)
        if step == "containers" and isinstance(inner, list) and any(_is_container(one) for one in inner):
            yield here
        else:
            yield from containers_in(inner, here)


def steps_to(value: Any, wanted: Any) -> tuple[Step, ...]:
    """Return the place of *wanted*, which is the same object, in *value*."""
    waiting: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while waiting:
        steps, one = waiting.pop()
        if one is wanted:
            return steps
        waiting.extend(((*steps, step), inner) for step, inner in _items(one))
    return ()


def is_request(key: object) -> bool:
    """Whether an annotation is part of a request."""
    return key in _REQUESTS or str(key).startswith(PER_CONTAINER)


def _is_container(value: Any) -> bool:
    """Whether it has an image, or a name and another field of a container: its controller may know the image."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("image"), str) or (
        isinstance(value.get("name"), str) and not _OF_CONTAINERS.isdisjoint(value)
    )


def _items(value: Any) -> Iterator[tuple[Step, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)
