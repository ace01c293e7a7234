"""
CAs of one name in a CA bundle, as a rotation leaves them there for weeks.

OpenSSL takes the first of the name, unless key identifiers tell them apart, and does not go back where its key is
another one. Go tries them all, and so does kubectl. What OpenSSL cannot do here either: a new CA that the bundle lacks,
of the name of the old one, which vouches for it.
"""

import ssl
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

_MOST_TRIES: Final = 8


def trusting(
    make: Callable[[], ssl.SSLContext], *, file: str | None = None, data: str | bytes | None = None
) -> tuple[ssl.SSLContext, ...]:
    """
    Make contexts that trust a CA bundle: the first all of it, and others, if need be, one CA of each name.

    A server is trusted if one of them trusts it: they are to be tried one after the other.

    Raises:
        OSError: If there is no bundle, or it is none.
    """
    whole = make()
    whole.load_verify_locations(file, cadata=data)
    names = [one["subject"] for one in whole.get_ca_certs()]
    found = [whole]
    for cas in one_of_each_name([*zip(names, whole.get_ca_certs(binary_form=True), strict=True)]):
        tls = make()
        tls.load_verify_locations(cadata=b"".join(cas))
        found.append(tls)
    return tuple(found)


def one_of_each_name(cas: Sequence[tuple[Hashable, bytes]]) -> Iterator[Sequence[bytes]]:
    """
    Yield choices among CAs, in which each of them is; none if all have names of their own.

    More would not help: of all CAs, OpenSSL needs the one that the certificates of the server lead to.
    """
    by_name: dict[Hashable, list[bytes]] = {}
    for name, ca in cas:
        by_name.setdefault(name, []).append(ca)
    most = max(map(len, by_name.values()), default=0)
    for number in range(min(most, _MOST_TRIES) if most > 1 else 0):
        yield [rivals[number % len(rivals)] for rivals in by_name.values()]
