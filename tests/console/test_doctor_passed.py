"""What a command says where the API server let something pass, or the machine does not let it read."""

import errno
import tempfile

import pytest

from tests.console.explained import Asked
from tests.console.objects import pod
from tests.console.stand_in import status_of
from tests.console.test_doctor import installed

_PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize("words", [("doctor",), ("explain", "resnet-0", "-n", "team-vision"), ("top",)])
def test_where_no_file_can_be_written_policies_are_not_seen(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    known = installed()
    known.lists["/api/v1/namespaces/team-vision/pods"] = [pod("resnet-0")]
    monkeypatch.setattr(tempfile, "gettempdir", none)
    ran = asked(known, *words)
    assert ran.exception is None or isinstance(ran.exception, SystemExit)
    told = "policies are read from files: No usable temporary directory found in ['/tmp']: mount a volume at /tmp"
    assert (told in ran.output) is (words != ("top",)), ran.output


def test_a_key_that_is_no_name_of_a_file_is_said(asked: Asked) -> None:
    known = installed()
    for one in known.lists["/api/v1/namespaces/gpu-share/configmaps"]:
        one["data"] = {"a\0b": ""}
    told = r'policies are read from files: "a\x00b" is no name of a file'
    assert told in asked(known, "doctor").stdout


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes',
        'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1',
        "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'gpu-share-lockdown' with binding 'b' denied request: no",
    ],
)
def test_a_denial_that_comes_after_all_webhooks_says_that_ours_denied_nothing(asked: Asked, message: str) -> None:
    known = installed()
    known.posted[_PODS] = status_of(403, message)
    text = asked(known, "doctor").stdout
    assert "! it answers the API server" in text
    assert "the webhook let a pod with an invalid share pass in namespace default; then: " in text


def test_without_nodes_no_part_is_said_to_run_on_them(asked: Asked) -> None:
    known = installed()
    known.lists["/api/v1/nodes"] = []
    parts = "/api/v1/namespaces/gpu-share/pods"
    known.lists[parts] = [one for one in known.lists[parts] if "webhook" in one["metadata"]["name"]]
    assert "✓ plugin and MPS run on the nodes" not in asked(known, "doctor").stdout
