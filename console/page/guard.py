"""
Who may ask: the one browser that was given the address with its secret, from the page itself.

A page of another site can send requests to 127.0.0.1 as well, by its own name if that leads there (DNS rebinding), and
so can other users of the machine.
"""

import secrets
from typing import Final
from urllib.parse import urlsplit

from flask import Flask, Request, Response, abort, redirect, render_template, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
_HOSTS: Final = ("127.0.0.1", "localhost", "::1")
_OWN: Final = ("same-origin", "none")  # none: typed, or a bookmark
_STATIC: Final = "static"  # what is the same for everyone
_COOKIE: Final = "gpu-share-console"  # cookies are of a host, whatever the port: its number is added
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: a browser would then send "Origin: null" with the page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Keeps others away from an application."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)  # in the address that is printed
        self._session = secrets.token_urlsafe(32)  # in the cookie, so that a cookie does not tell the address

    def protect(self, app: Flask) -> None:
        """Check each request, and give each answer its headers."""
        app.before_request(self._check)
        app.after_request(_with_headers)
        app.register_error_handler(HTTPException, _explained)

    def _check(self) -> AnyResponse | None:
        """Reject what is not from the page itself; let in who has the token."""
        reason = objection(request)
        if reason:
            abort(403, reason)
        if request.method == "GET" and _is_same(request.args.get(TOKEN, ""), self.token):
            return self._let_in(request)
        if request.endpoint != _STATIC and not self._is_known(request):
            abort(401, "Open the address that gpu-share console printed: without the secret in it nobody gets in.")
        return None

    def _is_known(self, asked: Request) -> bool:
        return _is_same(asked.cookies.get(_cookie(asked), ""), self._session)

    def _let_in(self, asked: Request) -> AnyResponse:
        """Keep the session in a cookie, and take the token out of the address."""
        answer = redirect(asked.path, code=303)
        answer.set_cookie(_cookie(asked), self._session, httponly=True, samesite="Strict", path="/")
        return answer


def objection(asked: Request) -> str:
    """Say why a request is not from the page itself; empty if nothing speaks against it."""
    host = urlsplit(f"//{asked.host}").hostname if asked.host else None
    if host not in _HOSTS:
        return "The page is at 127.0.0.1 and under no other name."
    origin = asked.headers.get("Origin")
    if origin is not None and origin != f"http://{asked.host}":
        return "The request comes from another page."
    site = asked.headers.get("Sec-Fetch-Site")
    if site is not None and site not in _OWN:
        return "The request comes from another page: type the address, or open it from a terminal."
    if asked.method not in ("GET", "HEAD") and origin is None and site != "same-origin":
        return "The request does not say from which page it comes."
    return ""


def _is_same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


def _cookie(asked: Request) -> str:
    return f"{_COOKIE}-{asked.host.rpartition(':')[2]}"


def _with_headers(answer: Response) -> Response:
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    if request.endpoint == _STATIC:
        answer.headers["Cache-Control"] = "no-cache"  # kept, and asked for whether it is still the same
    return answer


def _explained(error: HTTPException) -> tuple[str, int]:
    """Say in plain words why there is no page."""
    return render_template("error.html", code=error.code, name=error.name, why=error.description), error.code or 500
