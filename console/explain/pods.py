"""Read the pods that are explained: one by its name, or in pages those of an object, of which a few are kept."""

from collections.abc import Callable, Iterable

import msgspec

from console.api_server import ApiServer, UnseenError, decoded, path_of
from console.explain.crowd import Chosen, Crowd
from console.explain.wants import Placed, Wants
from console.explain.workload import makes
from console.objects import Object, Pod


def named(api: ApiServer, namespace: str, name: str) -> tuple[Chosen, ...]:
    """
    Read the pod of a *name*, if there is one, by the right to list pods, which all of `explain` rests on.

    Raises:
        UnseenError: If the user may not read pods there.
    """
    listed = api.all(msgspec.Raw, _path(namespace), fieldSelector=f"metadata.name={_escaped(name)}")
    pods = (Chosen(decoded(Pod, bytes(one)), bytes(one)) for one in listed)
    return tuple(one for one in pods if one.pod.metadata.name == name)


def made_by(
    api: ApiServer,
    namespace: str,
    kinds: Iterable[str],
    name: str,
    *,
    new: Callable[[], Crowd],
) -> dict[str, Crowd]:
    """
    Read the pods that an object of this *name* made, a *new* crowd for each of the *kinds* that it may be of.

    Raises:
        UnseenError: If the user may not read pods there.
    """
    crowds = {kind: new() for kind in kinds}
    for raw in api.all(msgspec.Raw, _path(namespace)) if crowds else ():
        content = bytes(raw)
        owned = decoded(Object, content)
        if makers := [kind for kind in crowds if makes(kind, name, owned)]:
            pod = decoded(Pod, content)
            wanted = Wants() if pod.spec.node_name else wants(content)
            for kind in makers:
                crowds[kind].add(pod, content, wanted)
    return crowds


def wants(content: bytes) -> Wants:
    """Read what chooses the nodes of a pod, from what the API server gives of it; nothing where it cannot be read."""
    try:
        return decoded(Placed, content).spec
    except UnseenError:
        return Wants()


def _path(namespace: str) -> str:
    return path_of("api", "v1", "namespaces", namespace, "pods")


def _escaped(value: str) -> str:
    """Write a value of a field selector, in which some characters have a meaning."""
    for character in "\\,=":
        value = value.replace(character, f"\\{character}")
    return value
