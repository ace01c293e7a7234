"""The edges that no real caller can bring about."""

import io
import logging
from pathlib import Path

import pytest

from policies.reading.store import PolicyStore
from policies.reading.troubles import TroubleLog
from tests.webhook.serving import review_of
from webhook.app import create_app
from webhook.body import BodyError, drain, read_body
from webhook.settings import MAX_BODY_BYTES, MAX_DRAIN_BYTES, Settings
from webhook.tls import ServingCertificate
from webhook.watch import look


class FailingStore(PolicyStore):
    @property  # type: ignore[override] # fails where the real one has an attribute
    def current(self) -> None:
        raise RuntimeError("Xyzzy-17")

    @current.setter
    def current(self, _: object) -> None:
        pass


def test_a_fault_of_ours_is_a_refusal_and_the_log_says_where_without_its_words(
    policies: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    client = create_app(FailingStore(policies), certificate).test_client()
    response = client.post("/mutate", data=review_of())
    assert (response.status_code, response.mimetype) == (400, "text/plain")
    assert response.text.count("\n") == 1
    assert "Xyzzy" not in response.text + caplog.text
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.__dict__["error"] == "RuntimeError"
    assert __file__ in record.__dict__["where"][-1]


class Endless(io.RawIOBase):
    """A caller that never stops sending."""

    sent_bytes = 0

    def read(self, size: int = -1) -> bytes:
        self.sent_bytes += size
        return b" " * size


def test_draining_stops_at_its_bound() -> None:
    caller = Endless()
    with pytest.raises(BodyError) as caught:
        read_body({"wsgi.input": caller})
    assert caught.value.status == 413
    assert caller.sent_bytes == MAX_BODY_BYTES + 1
    drain({"wsgi.input": caller})
    assert caller.sent_bytes == MAX_BODY_BYTES + 1 + MAX_DRAIN_BYTES


@pytest.fixture(autouse=True)
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_an_error_in_the_policies_is_logged_once_for_as_long_as_it_is_the_same(
    tmp_path: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = PolicyStore(tmp_path)
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    troubles = TroubleLog(logging.getLogger("test"))
    for broken in ("enabled: 1", "enabled: 1", "enabled: 2", "enabled: true", "enabled: 2"):
        (tmp_path / "_default.yaml").write_text(broken)
        for _ in range(2):
            look(store, certificate, troubles)
    levels = [record.levelname for record in caplog.records]
    assert levels == ["ERROR", "ERROR", "INFO", "ERROR"]


class FaultyStore(PolicyStore):
    def refresh(self) -> bool:
        raise MemoryError


def test_a_look_that_fails_is_logged_and_leaves_things_as_they_were(
    policies: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    look(FaultyStore(policies), certificate, TroubleLog(logging.getLogger("test")))
    assert [record.message for record in caplog.records] == ["looking for new files failed"]


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        ("127.0.0.1:8443", ("127.0.0.1", 8443)),
        ("[::]:1", ("::", 1)),
        ("::1:0", ("::1", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(bind: str, address: tuple[str, int]) -> None:
    assert Settings(Path("p"), Path("c"), Path("k"), bind).address == address
