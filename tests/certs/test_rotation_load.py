import time
from pathlib import Path

import pytest

from tests.certs.rotating_webhook import rotating

pytestmark = pytest.mark.exhaustive

CONNECTIONS = 2_000
CERTIFICATES = 20
POLICIES = Path(__file__).parent.parent.parent / "policies" / "files"


def test_no_connection_fails_while_certificates_rotate_five_times_a_second(tmp_path: Path) -> None:
    ends = time.monotonic() + 180  # 4 seconds on two cores
    with rotating(tmp_path, POLICIES) as running:
        while running.connections < CONNECTIONS or len(running.served) < CERTIFICATES or len(running.cas) < 4:
            assert running.failures == []
            assert time.monotonic() < ends, "too slow"
            time.sleep(0.05)
    assert running.failures == []
    assert len(running.seen) >= len(running.served) - 1, "callers met every certificate but the last"
