"""Policies, locales and arguments that are not UTF-8."""

import os
import subprocess
import sys
from base64 import b64encode

import pytest

from tests.console.conftest import Served
from tests.console.explained import Asked, explain, known
from tests.console.objects import pod
from tests.console.stand_in import StandIn
from tests.docs.pages import ROOT

_LATIN = "# f\xfcr uns\nshare: {maximum: '0.5'}\n".encode("latin-1")
_ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def with_policies(**files: dict[str, str]) -> StandIn:
    on = known(pod("resnet-0"))
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][0] |= files
    return on


def test_a_policy_that_is_no_text_is_told_to_be_broken_and_nothing_is_decided_by_the_others(asked: Asked) -> None:
    binary = {"team-vision.yaml": b64encode(_LATIN).decode()}
    text = explain(asked, with_policies(data={"_default.yaml": ""}, binaryData=binary), "resnet-0")
    assert "the policy of the namespace: ConfigMap gpu-share/gpu-share-policies/team-vision.yaml" in text
    assert "Policies of now" not in text


def test_policies_are_read_as_utf_8_whatever_the_locale_is(served: Served) -> None:
    on = with_policies(data={"_default.yaml": "# für alle → geprüft\nshare: {maximum: '0.5'}\n"})
    command = [sys.executable, "-m", "gpu_share", "explain", "--kubeconfig", str(served(on)), "resnet-0"]
    environment = {**os.environ, **_ASCII, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([*command, "-n", "team-vision"], env=environment, capture_output=True, check=False, cwd=ROOT)
    assert b"(_default.yaml:2) is allowed" in ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "words", [("explain", "n\udcff"), ("explain", "p", "-n", "\udcf6"), ("top", "--node", "\udcf6")]
)
def test_an_argument_that_is_not_utf_8_is_rejected_in_a_line_and_nobody_is_asked(
    asked: Asked, words: tuple[str, ...]
) -> None:
    on = known()
    ran = asked(on, *words)
    assert ran.exit_code == 2
    assert "must be UTF-8" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert on.asked == []
