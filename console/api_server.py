"""
Requests to the API server of the user's kubeconfig, by the user's rights: bounded in time and size.

A node's part answers through the API server's proxy, and may be anybody's by then: no redirect of it is followed.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from kubernetes import client, config
from kubernetes.client.rest import RESTResponse
from urllib3 import Retry
from urllib3.exceptions import HTTPError, ReadTimeoutError

from console.clock import ServerClock
from console.no_answer import foreign, message_of, short
from console.objects import Page
from console.words import Shown, as_shown
from policies.errors import GpuShareError
from program.api_client import api_client
from program.login import Login
from program.structs import decoder

T = TypeVar("T")

DEADLINE_SECONDS: Final = 8.0  # of one request, from when there is something to show to the last byte
MANY_SECONDS: Final = 3 * DEADLINE_SECONDS  # for the answers to many, which wait for one another
LISTING_SECONDS: Final = 15 * DEADLINE_SECONDS  # of all pages of a list
LARGEST_BYTES: Final = 64 * 1024 * 1024  # of one answer
MOST_CONNECTIONS: Final = 32
_PAGE: Final = 500  # objects in one answer
_MOST_PAGES: Final = 200
_MUCH_BYTES: Final = 1024 * 1024  # of one answer: if no more comes in time, less of it would not come either
_LESS: Final = 8  # times less in the next answer where one is too large
TOO_MANY_REQUESTS: Final = 429
_OK: Final = 200
_PROXIED = re.compile(r"/(?:nodes|pods)/[^/]+/proxy/").search  # in paths to what answers by its own clock
_RELATIVE = re.compile(r"/\.\.?(?:/|$)").search  # in paths that HTTP takes for others
_REMEDIES: Final = {401: "sign in again, or check the user of the kubeconfig", 403: "ask for the right"}
_REMEDIES_BEHIND_PROXY: Final = {
    503: "look at the pod that should answer, and at the network between API server and node",
}


class UnseenError(GpuShareError):
    """An answer that cannot be had: the sentence says why, *right* by which right it could, if one is missing."""

    def __init__(self, why: str, *, status: int = 0) -> None:
        self.why = Shown(why)
        self.status = status  # of HTTP; 0 if there was no answer
        super().__init__(str(self.why))


class ForeignError(UnseenError):
    """An answer without the words of an API server: of what is behind its proxy, or stands in its place."""


class TooLargeError(UnseenError):
    """An answer that is too large, or would take too long; less of it could be had."""


class ApiServer:
    """The API server of one context; for many threads."""

    def __init__(
        self,
        settings: client.Configuration,
        *,
        context: str = "",
        namespace: str = "default",
        login: Login | None = None,
        listing_seconds: float = LISTING_SECONDS,
    ) -> None:
        """Ask by *settings*, as the user of *login*; *context* and *namespace* are those of a kubeconfig."""
        settings.retries = Retry(total=0)
        settings.connection_pool_maxsize = MOST_CONNECTIONS
        self._client = api_client(settings, login)
        self._login = login
        self.clock = ServerClock()
        self.context = Shown(context)
        self.address = Shown(str(settings.host))
        self.namespace: str = Shown(namespace)  # of the context
        self._listing_seconds = listing_seconds
        self._is_stopped = False

    def stop(self) -> None:
        """Ask nothing any more, in whatever thread: what is being answered ends by its deadline."""
        self._is_stopped = True

    def sign_in(self) -> None:
        """
        Wait for what requests show, which a credential plugin may take longer for than an answer takes.

        Where it cannot be had, the requests say so.
        """
        if self._login:
            with suppress(config.ConfigException):
                self._login.credential()

    def get(self, path: str, query: Mapping[str, str] | None = None, *, largest_bytes: int = LARGEST_BYTES) -> bytes:
        """
        Ask for *path*, and give the answer.

        Raises:
            UnseenError: If there is no answer in time, or it is none that helps.
        """
        answer, content = self._ask("GET", path, query, {"Accept": "*/*"}, largest_bytes=largest_bytes)
        if answer.status != _OK:
            remedies = _REMEDIES | (_REMEDIES_BEHIND_PROXY if _PROXIED(path) else {})
            said, remedy = message_of(content), remedies.get(answer.status)
            if said:
                raise UnseenError(f"{said}{f': {remedy}' if remedy else ''}", status=answer.status)
            server = "" if _PROXIED(path) else self.address
            told = foreign(answer.status, answer.reason or "", content, server=server)
            raise ForeignError(told, status=answer.status)
        return content

    def post(self, path: str, body: object, query: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """
        Ask what only a POST asks, and that changes nothing; give status and answer, whatever they are.

        Raises:
            UnseenError: If there is no answer in time.
        """
        accepted = {"Accept": "application/json", "Content-Type": "application/json"}
        answer, content = self._ask("POST", path, query, accepted, body=body)
        return answer.status, content

    def one(self, kind: type[T], path: str) -> T:
        """
        Read one object.

        Raises:
            UnseenError: If it cannot be had.
        """
        return decoded(kind, self.get(path))

    def all(self, kind: type[T], path: str, **query: str) -> Iterator[T]:
        """
        Read a list of objects, in pages.

        Raises:
            UnseenError: If it cannot be had.
        """
        following, limit, objects = dict[str, str](), _PAGE, 0
        deadline = time.monotonic() + self._listing_seconds
        for _ in range(_MOST_PAGES):
            try:
                content = self.get(path, {**query, **following, "limit": str(limit)})
            except TooLargeError:
                if limit == 1:
                    raise
                limit = max(limit // _LESS, 1)
                continue
            page = decoded(Page[kind], content)  # type: ignore[valid-type] # a value
            if not page.is_list:
                raise UnseenError(f"no list at {path}: is {self.address} the API server?")
            yield from page.items or ()
            if not page.metadata.next:
                return
            objects += len(page.items or ())
            if time.monotonic() > deadline:
                why = f"no whole list within {self._listing_seconds:g} s, but {objects} objects"
                raise UnseenError(f"{why}: ask for one namespace by -n")
            following, limit = {"continue": page.metadata.next}, min(2 * limit, _PAGE)
        raise UnseenError(f"more than {objects} objects, or large ones: ask for one namespace by -n")

    def _ask(  # noqa: PLR0913 - what a request has
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        *,
        body: object = None,
        largest_bytes: int = LARGEST_BYTES,
    ) -> tuple[RESTResponse, bytes]:
        if self._is_stopped:
            raise UnseenError("interrupted")
        if _RELATIVE(path):
            raise UnseenError("nothing has the name . or ..", status=404)
        self.sign_in()
        deadline = time.monotonic() + DEADLINE_SECONDS
        try:
            asked = {"query_params": [*(query or {}).items()], "header_params": dict(headers), "body": body}
            call = self._client.param_serialize(method, path, auth_settings=["BearerToken"], **asked)
            answer = self._client.call_api(*call, _request_timeout=DEADLINE_SECONDS)
            if not _PROXIED(path):
                self.clock.note(answer.response.headers)
            return answer, _read(answer.response, deadline, largest_bytes)
        except (HTTPError, OSError, config.ConfigException, client.ApiException) as error:
            raise UnseenError(f"no answer from {self.address}: {short(error)}") from None


def path_of(*parts: str) -> str:
    """Write a path of the API, whatever is in the names."""
    return "".join(f"/{quote(part, safe=':')}" for part in parts)


def _read(response: Any, deadline: float, largest_bytes: int) -> bytes:
    """Read an answer that may be slow or endless."""
    content = bytearray()
    try:
        while part := response.read1(65536, decode_content=False):
            content += part
            _check(len(content), deadline, largest_bytes)
    except BaseException as error:
        response.close()  # what is left of the answer must not be taken for the next one
        if isinstance(error, ReadTimeoutError):
            _check(len(content), deadline, largest_bytes)
        raise
    return bytes(content)


def _check(size_bytes: int, deadline: float, largest_bytes: int) -> None:
    if size_bytes > largest_bytes:
        raise TooLargeError(f"the answer is larger than {largest_bytes} bytes")
    if time.monotonic() > deadline:
        late = f"no whole answer within {DEADLINE_SECONDS:g} s"
        raise TooLargeError(late) if size_bytes > _MUCH_BYTES else UnseenError(late)


def decoded(kind: type[T], content: bytes) -> T:
    """
    Read an object out of an answer; null counts as not being there, which it is in the API.

    Raises:
        UnseenError: If it is something else.
    """
    try:
        try:
            return decoder(kind, as_shown).decode(content)
        except msgspec.ValidationError:  # mostly there is no null, or none where it would matter
            return msgspec.convert(_without_nulls(msgspec.json.decode(content)), kind, dec_hook=as_shown)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise UnseenError(f"the answer is not understood: {error}") from None


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_nulls(one) for key, one in value.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in value if one is not None]
    return value
