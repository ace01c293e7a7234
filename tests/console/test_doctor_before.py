"""What `gpu-share doctor --pre` looks at before an installation."""

from console.doctor.report import BEFORE, findings
from tests.console.installations import (
    installation,
    seen,
)


def test_before_an_installation_a_disabled_gate_is_told_and_no_failure() -> None:
    found = {one.check: one for one in findings(installation(gates={"DRAExtendedResource": False}), BEFORE)}
    assert (found["feature-gates"].status, found["feature-gates"].found) == (
        "warning",
        ("the feature gate DRAExtendedResource is disabled",),
    )


def test_before_an_installation_no_node_needs_a_label() -> None:
    found = {one.check: one.status for one in findings(installation(seen(nodes=())), BEFORE)}
    assert (found["nodes-labelled"], found["other-plugins"]) == ("not-applicable", "not-applicable")


def test_before_an_installation_the_rights_to_install_are_looked_at() -> None:
    found = findings(installation(rights={"namespaces": True, "daemonsets": False}), BEFORE)
    assert [(one.check, one.found) for one in found if one.status == "failure"] == [
        ("rights", ("you may not create daemonsets",))
    ]
