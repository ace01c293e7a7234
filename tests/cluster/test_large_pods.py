"""A pod with far more annotations than any real one keeps the API server from nothing, with a share or without."""

import time

from tests.cluster.pods import Place, pod

MANY = 40_000
# Of the API server without anything of ours it is one to three; looking through all of it takes half a minute.
SECONDS = 10.0


def annotated(count: int, share: str | None = None) -> dict[str, object]:
    return pod(share, annotations={f"x{number}": "" for number in range(count)})


def test_a_pod_without_a_share_and_with_many_annotations_is_created_and_its_status_written(place: Place) -> None:
    begin = time.monotonic()
    created = place.create(annotated(MANY))
    assert created.ok, created.message
    status = {"status": {"conditions": [{"type": "example.com/looked", "status": "True"}]}}
    written = place.cluster.api.ask("PATCH", f"{place.path}/model/status", status)
    assert written.ok, written.message
    assert time.monotonic() - begin < SECONDS


def test_a_pod_with_a_share_and_many_annotations_is_denied_and_gets_no_more_of_them_later(place: Place) -> None:
    assert "at most 1023 are allowed" in place.create(annotated(MANY, "0.2")).message
    place.started(pod("0.2"))
    many = {"metadata": {"annotations": {f"x{number}": "" for number in range(1024)}}}
    denied = place.cluster.api.ask("PATCH", f"{place.path}/model", many)
    assert "A pod with a GPU share would have more than 1024 annotations" in denied.message
