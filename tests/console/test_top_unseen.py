"""What `gpu-share top` says of a cluster in which there is nothing, or nothing to be seen."""

from collections.abc import Callable

import pytest
from click.testing import Result

from tests.console.objects import cluster, denial
from tests.console.stand_in import status_of
from tests.console.test_denials_by_others import KYVERNO, REPLICA_SET

Asked = Callable[..., Result]


@pytest.mark.parametrize(
    ("forbidden", "missing"),
    [
        (set[str](), ("no node has a part of gpu-share", "no pod with a share", "0 nodes, 0 GPUs")),
        ({"nodes", "events"}, ("no pod with a share",)),
        ({"pods", "events"}, ()),
    ],
)
def test_only_what_can_be_seen_is_said_to_be_missing(
    asked: Asked, forbidden: set[str], missing: tuple[str, ...]
) -> None:
    known = cluster()
    known.forbidden = forbidden
    text = asked(known, "top", "--once").stdout
    every = ("no node has a part of gpu-share", "no pod with a share", "0 nodes, 0 GPUs")
    assert tuple(one for one in every if one in text) == missing


def test_what_is_hidden_of_denied_pods_alone_is_no_failure_where_nothing_is_installed(asked: Asked) -> None:
    known = cluster(events=(denial(KYVERNO),))
    known.raw[REPLICA_SET] = status_of(403, "forbidden")
    found = asked(known, "top", "--once")
    assert (found.exit_code, "no pod with a share" in found.stdout, "not seen" in found.stdout) == (0, True, True)
