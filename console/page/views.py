"""Each page: what was seen, as values for its template."""

import re
from datetime import UTC, datetime
from typing import Any, Final

from flask import Response, request

from console.page.desk import Desk, Explained, Previewed
from console.page.filters import Filters, read_filters
from console.page.gpus import nodes_view
from console.page.live import Sections, answer
from console.page.pods import pods_view
from console.page.recent import recent
from console.page.rules import rules_view
from console.page.troubles import troubles
from console.page.watch import Sight
from console.seen import Seen
from console.top.summary import summary
from console.words import moment

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_-]{0,252}")  # of an object, or KIND/NAME


def cluster(desk: Desk) -> Response:
    """Nodes, GPUs and pods, and what is wrong with them."""
    sight = desk.watch.newest()
    filters, now = read_filters(request.args), _now(sight.seen)
    sections: Sections = {
        "status": _status(sight),
        "troubles": {"troubles": troubles(sight.shown, filters, now)},
        "nodes": {"view": nodes_view(sight.shown, filters, now)},
        "pods": {"pods": pods_view(sight.shown, filters, now)},
    }
    return answer("cluster", sections, filters=filters, **_choices(sight, filters))


def explain(desk: Desk) -> Response:
    """A pod, or what makes pods, as `gpu-share explain` explains it."""
    namespace = request.args.get("namespace", "").strip() or desk.namespace
    name = request.args.get("name", "").strip()
    explained = Explained()
    if name and _NAME.fullmatch(name) and _NAME.fullmatch(namespace):
        explained = desk.explained.get((namespace, name))
    elif name:
        explained = Explained(problem="expected the name of a pod, or kind/name such as deployment/resnet")
    sections: Sections = {"status": _status(desk.watch.newest()), "explained": {"explained": explained}}
    return answer("explain", sections, namespace=namespace, name=name)


def policies(desk: Desk) -> Response:
    """The policies in force, each field with file and line."""
    namespace = request.args.get("namespace", "")[:253]
    found = desk.policies.get(None)
    rules = rules_view(found.in_force, namespace) if found.in_force is not None else None
    sections: Sections = {"status": _status(desk.watch.newest()), "rules": {"rules": rules, "found": found}}
    return answer("policies", sections, namespace=namespace)


def changes(desk: Desk) -> Response:
    """What changed in the last hour."""
    sight, kept = desk.watch.newest(), desk.records.get(None)
    filters = read_filters(request.args)
    found = [
        one
        for one in recent(sight.seen, kept, sight.observed)
        if filters.namespace in ("", one.namespace) and filters.node in ("", one.node)
    ]
    sections: Sections = {"status": _status(sight), "recent": {"changes": found, "unseen": kept.unseen}}
    return answer("changes", sections, filters=filters, **_choices(sight, filters))


def preview(desk: Desk) -> Response:
    """What the webhook would do with a pod that is pasted."""
    text, namespace = request.form.get("pod", ""), request.form.get("namespace", "").strip()
    previewed = Previewed()
    if namespace and not _NAME.fullmatch(namespace):
        previewed = Previewed(problem="expected the name of a namespace")
    elif text.strip():
        previewed = desk.previewed(text, namespace)
    elif request.method == "POST":
        previewed = Previewed(problem="expected a pod, or an object that makes pods, as YAML or JSON: got nothing")
    sections: Sections = {"status": _status(desk.watch.newest())}
    return answer("preview", sections, text=text, namespace=namespace, previewed=previewed)


def _status(sight: Sight) -> dict[str, Any]:
    return {
        "context": sight.seen.context,
        "at": sight.seen.at,
        "is_first_due": sight.is_first_due,
        "summary": summary(sight.shown) if sight.number else (),
    }


def _now(seen: Seen) -> datetime:
    return moment(seen.at) or datetime.now(UTC)


def _choices(sight: Sight, filters: Filters) -> dict[str, list[str]]:
    """List what can be chosen, and what is chosen though it is not there."""
    namespaces = {row.namespace for row in sight.shown.pods} | {one.namespace for one in sight.shown.denied}
    nodes = {node.name for node in sight.shown.nodes}
    return {
        "namespaces": sorted(namespaces | ({filters.namespace} - {""})),
        "node_names": sorted(nodes | ({filters.node} - {""})),
    }
