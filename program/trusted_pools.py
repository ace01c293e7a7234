"""Connections to an API server that is trusted if one of several contexts trusts it."""

from collections.abc import Sequence
from ssl import SSLCertVerificationError, SSLContext
from typing import Any

from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.exceptions import MaxRetryError, SSLError


class TrustedPools:
    """For many threads; a request goes by what the last one went by, and on to the next where that does not trust."""

    def __init__(self, pools: Sequence[PoolManager]) -> None:
        """Have requests made by *pools*, each of which has a context of its own."""
        self._pools = tuple(pools)
        self._current = 0

    def request(self, method: str, url: str, **rest: Any) -> BaseHTTPResponse:
        """
        Make a request: nothing of it was sent where the server is not trusted, and no redirect is followed.

        Raises:
            HTTPError: If there is no answer, or the server is not trusted.
        """
        # Said here: by `Retry(redirect=False)` urllib3 reads first where it leads, and fails where that is no URL.
        rest["redirect"] = False
        first = self._current
        for tried in range(first, first + len(self._pools) - 1):
            number = tried % len(self._pools)
            try:
                answer = self._pools[number].request(method, url, **rest)
            except MaxRetryError as error:
                if not _is_of_trust(error):
                    raise
            else:
                self._current = number
                return answer
        self._current = (first - 1) % len(self._pools)
        return self._pools[self._current].request(method, url, **rest)

    def show(self, contexts: Sequence[SSLContext]) -> None:
        """Use other contexts on connections that are made from now on: they lead to ones of their own."""
        for pool, context in zip(self._pools, contexts, strict=False):
            pool.connection_pool_kw.update(ssl_context=context, cert_file=None, key_file=None)

    def clear(self) -> None:
        """Close the connections."""
        for pool in self._pools:
            pool.clear()


def _is_of_trust(error: MaxRetryError) -> bool:
    reason = error.reason
    return isinstance(reason, SSLError) and any(isinstance(one, SSLCertVerificationError) for one in reason.args)
