"""
Decoders of Structs that several threads may read.

msgspec looks up the types of a Struct when it is read first. A second thread that reads it at that moment finds half of
them, and the process ends by a segmentation fault (msgspec 0.22.0, with the interpreter's lock). So they are looked up
here, one after the other.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Final, TypeVar, cast

import msgspec

T = TypeVar("T")
Hook = Callable[[type, Any], Any]  # makes a value of a type that msgspec does not know

_LOOKING_UP: Final = Lock()


def decoder(kind: type[T], dec_hook: Hook | None = None) -> msgspec.json.Decoder[T]:
    """Give the decoder of *kind*, in which all types are known."""
    with _LOOKING_UP:
        made: msgspec.json.Decoder[T] = _decoder(cast("Any", kind), dec_hook)
    return made


@cache
def _decoder(kind: Any, dec_hook: Hook | None) -> Any:
    return msgspec.json.Decoder(kind, dec_hook=dec_hook)
