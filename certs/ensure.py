"""One pass of `gpu-share certs ensure`: read, make the next write, and read again, until nothing is left to write."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from certs.clock import check_clock
from certs.cluster import Cluster
from certs.connection import connect
from certs.errors import ClusterError, ConflictError, NoClusterError
from certs.issuer import IssueError, check_names
from certs.metrics import LastPass
from certs.passes import repeated, watched
from certs.rotation import Settings, State, next_write
from policies.contract import WEBHOOK_CONFIGURATION, WEBHOOK_NAME
from program.front import FAILED, UNUSABLE, failed
from program.http_server import serve_beside
from program.log import start_logging

_log = logging.getLogger(__name__)

_MOST_READS = 30  # a first installation takes six


def run(
    *,
    namespace: str,
    service: str,
    settle_minutes: int,
    every_minutes: int | None = None,
    metrics_bind: tuple[str, int] | None = None,
) -> int:
    """
    Make one pass, or one every so many minutes.

    The exit code is 0 if nothing is left to write now, or if a signal ended the process between two passes; 1 if a pass
    failed, 2 for invalid input.
    """
    start_logging(level=logging.WARNING)  # the client's own lines only when something is wrong
    for ours in ("certs", "program"):
        logging.getLogger(ours).setLevel(logging.INFO)
    name = f"{service}.{namespace}.svc"
    settings = Settings(names=(name, f"{name}.cluster.local"), settle=timedelta(minutes=settle_minutes))
    last = LastPass()
    make_pass = partial(_pass, namespace, settings, last)
    if every_minutes is None:
        return watched(make_pass)
    serve_beside(metrics_bind, {"/metrics": lambda _query: last.answer()}, what="metrics")
    return repeated(make_pass, pause_seconds=60.0 * every_minutes)


def _pass(namespace: str, settings: Settings, last: LastPass) -> int:
    try:
        check_names(settings.names)
        with connect() as api:
            state = ensure(Cluster(api, namespace=namespace), settings, clock=lambda: datetime.now(UTC))
            last.note(state, datetime.now(UTC))
    except (IssueError, NoClusterError) as error:
        return failed("certs ensure", error, UNUSABLE)
    except ClusterError as error:
        return failed("certs ensure", error, FAILED)
    return 0


def ensure(cluster: Cluster, settings: Settings, *, clock: Callable[[], datetime]) -> State:
    """
    Write until there is nothing left to write now, and return what is there then.

    Raises:
        ClusterError: If the API server cannot be reached, rejects a request or has another time, if there is no
            webhook to publish the CA bundle in, or if other clients keep changing the same objects.
    """
    for _ in range(_MOST_READS):
        found = cluster.read()
        now = clock()
        write = next_write(found.state, settings=settings, now=now, time=found.time)
        if write is None:
            if found.state.bundle is None:
                raise ClusterError(
                    f"there is no webhook {WEBHOOK_NAME} in mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}: "
                    "apply the manifests, and the next pass publishes the CA bundle"
                )
            _log.info("nothing to write")
            return found.state
        check_clock(now, found.time)
        try:
            cluster.write(write, found)
        except ConflictError as conflict:
            _log.info("another client changed the object, reading again", extra={"request": str(conflict)})
        else:
            _log.info("written", extra={"what": write.what, "reason": write.reason})
    raise ClusterError(
        f"gave up after {_MOST_READS} reads: other clients keep changing the same objects: "
        "find them in metadata.managedFields"
    )
