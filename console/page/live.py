"""A page of sections, of which the browser asks again for those that have changed."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlencode

from flask import Response, make_response, render_template, request
from markupsafe import Markup

Sections = Mapping[str, Mapping[str, Any]]  # by the name of the section: the values of its template

_KNOWN: Final = "known"  # parameter: the sections that the browser has, as they were
_NOTHING_NEW: Final = 204
_SECTION: Final = Markup(
    '<div id="{name}" class="section">\n{text}<input type="hidden" class="known" name="known" value="{print}">\n</div>'
)


def answer(page: str, sections: Sections, **values: Any) -> Response:
    """
    Render a *page*, or of its *sections* those that the browser does not have as they are.

    Each section has the template of its name, and values of its own beside those of the page.
    """
    texts = {name: render_template(f"sections/{name}.html", **values, **own) for name, own in sections.items()}
    prints = {name: _fingerprint(name, text) for name, text in texts.items()}
    known = {*request.args.getlist(_KNOWN)}
    made = {
        name: _SECTION.format(name=name, text=Markup(text), print=prints[name])  # noqa: S704 - its template escaped it
        for name, text in texts.items()
        if prints[name] not in known
    }
    if not known:
        again = [(name, value) for name, value in request.args.items(multi=True) if name != _KNOWN]
        live_at = f"{request.path}?{urlencode(again)}"
        return make_response(render_template(f"{page}.html", sections=made, live_at=live_at, **values))
    if not made:
        return make_response("", _NOTHING_NEW)
    return make_response(render_template("changed.html", sections=made))


def _fingerprint(name: str, text: str) -> str:
    """Name a section as it is now."""
    return f"{name}-{blake2b(text.encode(), digest_size=9).hexdigest()}"
