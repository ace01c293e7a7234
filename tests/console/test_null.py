"""Null, which the API server gives for some lists that are empty."""

from collections.abc import Callable

import pytest

from console.api_server import ApiServer
from console.look import look
from tests.console.objects import cluster, gpu, pod, state
from tests.console.stand_in import StandIn

Connected = Callable[[StandIn], ApiServer]


@pytest.mark.parametrize(
    "given",
    [
        {
            "volumes": [{"name": "all", "projected": {"sources": None, "defaultMode": 420}}]
        },  # as the API server gives it
        {"volumes": None, "initContainers": None, "schedulerName": None},
        {"containers": [{"name": "main", "args": None, "env": [{"name": "A", "value": None}], "resources": None}]},
    ],
)
def test_a_pod_with_null_in_place_of_what_it_does_not_have_is_seen_as_any_other(
    connected: Connected, given: dict[str, object]
) -> None:
    one, other = pod("one"), pod("other")
    one["spec"].update(given)
    seen = look(connected(cluster(state(gpu()), pods=(one, other))))
    assert (seen.unseen, [found.name for found in seen.pods]) == ((), ["one", "other"])
