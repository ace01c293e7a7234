"""One pass: read, write what comes next, and read again, until all is well."""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from certs.cluster import Cluster, ClusterError, ConflictError, NoClusterError, connect
from certs.issuer import IssueError, check_names
from certs.log import start_logging
from certs.rotation import Rules, next_write
from policies.contract import WEBHOOK_CONFIGURATION, WEBHOOK_NAME

_log = logging.getLogger(__name__)

_FAILED = 1
_BAD_INPUT = 2
_LOOKS = 30  # an installation from nothing takes six


def run(*, namespace: str, service: str, settle_minutes: int) -> int:
    """Make one pass; the exit code is 0 if all is well or has to wait, 1 if it failed, 2 for bad input."""
    start_logging()
    name = f"{service}.{namespace}.svc"
    rules = Rules(names=(name, f"{name}.cluster.local"), settle=timedelta(minutes=settle_minutes))
    try:
        check_names(rules.names)
        with connect() as api:
            ensure(Cluster(api, namespace=namespace), rules, clock=lambda: datetime.now(UTC))
    except (IssueError, NoClusterError) as error:
        return _failure(error, _BAD_INPUT)
    except ClusterError as error:
        return _failure(error, _FAILED)
    return 0


def ensure(cluster: Cluster, rules: Rules, *, clock: Callable[[], datetime]) -> None:
    """
    Write until there is nothing more to write now.

    Raises:
        ClusterError: If the API server cannot be reached or refuses, if there is no webhook to
            publish the authority to, or if others do not stop changing the same objects.
    """
    for _ in range(_LOOKS):
        found = cluster.read()
        write = next_write(found.state, rules=rules, now=clock())
        if write is None:
            if found.state.bundle is None:
                raise ClusterError(
                    f"there is no webhook {WEBHOOK_NAME} in mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}: "
                    "apply the manifests, and the next pass publishes the authority"
                )
            _log.info("nothing to write")
            return
        fields = {"what": type(write).__name__, "reason": write.reason}
        try:
            cluster.write(write, found)
        except ConflictError as conflict:
            _log.info("someone was quicker, looking again", extra={"request": str(conflict)})
        else:
            _log.info("written", extra=fields)
    raise ClusterError(f"still not at rest after {_LOOKS} looks: others change the same objects")


def _failure(error: Exception, code: int) -> int:
    sys.stderr.write(f"gpu-share certs ensure: {' '.join(str(error).split())}\n")
    return code
