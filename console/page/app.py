"""The application: which page is at which address, and how templates are read."""

from functools import partial
from typing import Final

from flask import Flask
from jinja2 import StrictUndefined

from console.page import views
from console.page.desk import Desk
from console.page.guard import Guard

LARGEST_BYTES: Final = 1024 * 1024  # of a request


def create_app(desk: Desk, guard: Guard) -> Flask:
    """Make the application that *guard* protects."""
    app = Flask(__name__)
    app.config.update(MAX_CONTENT_LENGTH=LARGEST_BYTES, MAX_FORM_MEMORY_SIZE=LARGEST_BYTES)
    app.jinja_options = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    guard.protect(app)
    app.add_url_rule("/", "cluster", partial(views.cluster, desk))
    app.add_url_rule("/explain", "explain", partial(views.explain, desk))
    app.add_url_rule("/policies", "policies", partial(views.policies, desk))
    app.add_url_rule("/changes", "changes", partial(views.changes, desk))
    app.add_url_rule("/preview", "preview", partial(views.preview, desk), methods=["GET", "POST"])
    return app
