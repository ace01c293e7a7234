"""The edges that no real caller can bring about."""

import json
import logging
from base64 import b64decode
from pathlib import Path

import pytest

from policies.reading.store import PolicyStore
from policies.reading.troubles import TroubleLog
from tests.webhook.serving import review_of
from webhook.app import Application
from webhook.http1 import Request
from webhook.settings import Settings
from webhook.tls import ServingCertificate
from webhook.watch import look, pause_seconds


class FailingStore(PolicyStore):
    @property  # type: ignore[override] # fails where the real one has an attribute
    def current(self) -> None:
        raise RuntimeError("Xyzzy-17")

    @current.setter
    def current(self, _: object) -> None:
        pass


def test_a_fault_of_ours_is_rejected_and_the_log_says_where_without_its_words(
    policies: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    application = Application(FailingStore(policies), certificate)
    answer = application(Request("POST", b"/mutate?timeout=3s", review_of(), is_last=False))
    assert (answer.status, answer.content_type) == (400, "text/plain; charset=utf-8")
    text = answer.body.decode()
    assert text.count("\n") == 1
    assert "Xyzzy" not in text + caplog.text
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.__dict__["error"] == "RuntimeError"
    assert __file__ in record.__dict__["where"][-1]


@pytest.mark.parametrize(("path", "restricted"), [("/mutate", False), ("/mutate/restricted", True)])
@pytest.mark.parametrize("form", ["{}", "{}?timeout=10s", "https://gpu-share-webhook.gpu-share.svc:443{}?timeout=10s"])
def test_a_review_is_answered_in_whichever_form_its_target_is(
    policies: Path, certificates: Path, path: str, form: str, *, restricted: bool
) -> None:
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    called = Request("POST", form.format(path).encode(), review_of(), is_last=False)
    answer = Application(PolicyStore(policies), certificate)(called)
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert (b"hostIPC" in b64decode(json.loads(answer.body)["response"]["patch"])) == (not restricted)


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
    ("spent", "has_changed", "pause"),
    [(0.0001, False, 1), (0.005, False, 1), (0.04, False, 8), (3, False, 10), (3, True, 1)],
)
def test_looking_for_changes_takes_half_a_percent_of_a_core(spent: float, has_changed: bool, pause: float) -> None:  # noqa: FBT001
    assert pause_seconds(spent, has_changed=has_changed) == pytest.approx(pause)


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
