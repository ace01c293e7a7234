"""The kubelet's list of pod resources as it comes, looked at before anything is made of it."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from plugin.errors import TenantsError
from plugin.pod_resources.v1 import api_pb2

# Far above any node: Kubernetes supports 110 pods of one. A container with a name of two letters is six bytes here, and
# takes hundreds in memory.
MOST_CONTAINERS: Final = 20_000
# Where the kubelet lists each claim for each container that has it, two pods of 32 containers have 5 MiB.
LARGEST_BYTES: Final = 16 * 1024 * 1024
_NUMBER, _OF_LENGTH = 0, 2  # how Protocol Buffers write a field: messages and texts by their length, then themselves
_FIXED_BYTES: Final = {1: 8, 5: 4}
_LONGEST_NUMBER: Final = 10  # bytes
_MORE: Final = 0x80  # in each of them but the last
_POD: Final = api_pb2.ListPodResourcesResponse.POD_RESOURCES_FIELD_NUMBER
_CONTAINER: Final = api_pb2.PodResources.CONTAINERS_FIELD_NUMBER


def parsed(answer: bytes, socket: Path) -> api_pb2.ListPodResourcesResponse:
    """
    Read an answer that came from *socket*.

    Raises:
        TenantsError: If it has more containers than fit into the plugin's memory, or is none.
    """
    try:
        pods = _parts(answer, _POD, 0, len(answer))
        containers = chain.from_iterable(_parts(answer, _CONTAINER, begin, end) for begin, end in pods)
        if next(islice(containers, MOST_CONTAINERS, None), None):
            why = f"the kubelet lists more than {MOST_CONTAINERS} containers on this node: delete some of its pods"
            raise TenantsError(f"{socket}: {why}")
        return api_pb2.ListPodResourcesResponse.FromString(answer)
    except (DecodeError, IndexError) as error:
        raise TenantsError(f"{socket}: the kubelet's list of pod resources cannot be read") from error


def _parts(answer: bytes, field: int, at: int, end: int) -> Iterator[tuple[int, int]]:
    """
    Yield where messages of one field begin and end in the message from *at* to *end*.

    Raises:
        IndexError: If the answer ends in the middle of a number.
        DecodeError: If a field is written in no known way.
    """
    while at < end:
        tag, at = _number(answer, at)
        kind = tag & 7
        if kind == _OF_LENGTH:
            length, at = _number(answer, at)
            if tag >> 3 == field:
                yield at, at + length
            at += length
        elif kind == _NUMBER:
            _, at = _number(answer, at)
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
        else:
            raise DecodeError


def _number(answer: bytes, at: int) -> tuple[int, int]:
    """Read a number, seven bits in each byte, and where it ends."""
    number = 0
    for place in range(_LONGEST_NUMBER):
        byte = answer[at + place]
        number |= (byte & ~_MORE) << (7 * place)
        if not byte & _MORE:
            return number, at + place + 1
    raise DecodeError
