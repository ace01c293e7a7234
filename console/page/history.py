"""Ask for what tells of the last hour beside a look: events, edits of the policies, and the certificate."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec

from console.api_server import ApiServer, path_of
from console.events import Event
from console.look import Looks
from console.page.recent import Edit, Records
from console.serving_certificate import RIGHT, serving_certificate
from console.words import Shown
from policies.contract import NAMESPACE
from program.certificates import first_certificate

_CONFIG_MAPS: Final = "gpu-share-"  # how ours begin


class _Edit(msgspec.Struct, frozen=True):
    manager: Shown = Shown("")
    time: Shown = Shown("")


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: Shown = Shown("")
    managed_fields: tuple[_Edit, ...] = ()


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


def records(api: ApiServer, namespace: str, *, policies: Collection[str] = ()) -> Records:
    """
    Ask for all of it as far as the user's rights go; for events of one *namespace*, or of all without one.

    *policies* are the ConfigMaps that hold them, beside those that have our name.
    """
    looks = Looks()
    place = ("namespaces", namespace) if namespace else ()
    of = f" in namespace {namespace}" if namespace else ""
    events: list[Event] = looks.at(
        f"warnings of pods and nodes{of}",
        f"list events{of}",
        lambda: [*api.all(Event, path_of("api", "v1", *place, "events"), fieldSelector="type=Warning")],
        [],
    )
    edits: list[Edit] = looks.at(
        "edits of the policies", f"list configmaps in namespace {NAMESPACE}", lambda: _edits(api, policies), []
    )
    certificate = looks.at(
        "the certificate that the webhook serves",
        RIGHT,
        lambda: _certificate_from(api),
        None,
    )
    return Records(events=tuple(events), edits=tuple(edits), certificate_from=certificate, unseen=tuple(looks.unseen))


def _edits(api: ApiServer, policies: Collection[str]) -> list[Edit]:
    listed = api.all(_ConfigMap, path_of("api", "v1", "namespaces", NAMESPACE, "configmaps"))
    return [
        Edit(what=Shown(f"ConfigMap {one.metadata.name}"), by=edit.manager, at=edit.time)
        for one in listed
        if one.metadata.name.startswith(_CONFIG_MAPS) or one.metadata.name in policies
        for edit in one.metadata.managed_fields
    ]


def _certificate_from(api: ApiServer) -> datetime | None:
    """Read when the certificate became valid; None if it cannot be read."""
    served = first_certificate(serving_certificate(api))
    return served.not_valid_before_utc if served else None
