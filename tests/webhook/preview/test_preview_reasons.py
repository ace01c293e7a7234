"""`preview` shows every reason for which a pod is denied."""

import json
from pathlib import Path

import pytest

from tests.policies.pods import container, pod
from tests.webhook.commands import preview

BAD = json.dumps(pod("0.8", container(securityContext={"privileged": True}), hostPID=True))


def test_an_explanation_has_a_line_for_each_reason_and_the_codes_in_its_title() -> None:
    lines = preview(BAD, "-n", "team-vision", code=1).stdout.splitlines()
    assert lines[1] == "Pod team-vision/example: denied, ShareAboveMaximum, PrivilegedContainer"
    denials = [line.strip() for line in lines if line.startswith("  The pod is denied with ")]
    assert [line.split()[5] for line in denials] == [
        "ShareAboveMaximum:",
        "PrivilegedContainer:",
        "PrivilegedContainer:",
    ]
    assert "more reason" not in "".join(lines)


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_the_other_outputs_have_them_on_stderr(output: str) -> None:
    result = preview(BAD, "-n", "team-vision", "-o", output, code=1)
    assert result.stderr.count("denied with ") == 3


def test_what_mode_warn_would_deny_is_said_in_full(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text('mode: warn\nshare: {maximum: "0.5"}\n')
    text = preview(BAD, "--policies", tmp_path).stdout
    assert text.count("Warning: would be denied with ") == 3


def test_what_mode_warn_admits_with_a_share_is_said_too(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: warn\n")
    limited = json.dumps(pod(None, container(resources={"limits": {"gpu-share.dev/vgpu": 20}})))
    text = preview(limited, "--policies", tmp_path).stdout
    assert 'Warning: Container "main" keeps its limit gpu-share.dev/vgpu, and gets that share unchecked' in text
