"""What a namespace gets whose policy file is broken."""

import msgspec
import pytest

from policies.errors import Problem
from policies.policy import broken_policy
from tests.policies.pods import denied, granted, pod, policies, untouched


@pytest.mark.parametrize("by_exemption", [False, True])
def test_a_broken_policy_denies_its_namespace_with_file_line_and_problem(*, by_exemption: bool) -> None:
    problem = Problem("team.yaml", 3, "share.maximum", 'expected a share in quotes, got 2: write "2"')
    cluster = "exemptNamespaces: [team]" if by_exemption else ""
    by = msgspec.structs.replace(policies(cluster=cluster), namespaces={"team": broken_policy("team", problem)})
    untouched(pod(None), by)
    granted(pod("0.2"), by, "other")
    if by_exemption:
        untouched(pod("0.2"), by)
        return
    deny = denied(pod("0.2"), by)
    assert deny.code == "PolicyBroken"
    assert deny.message == (
        'The policy of this namespace is broken: share.maximum: expected a share in quotes, got 2: write "2" '
        "(team.yaml:3). Ask its administrator to correct the file."
    )


def test_a_denial_by_a_broken_policy_keeps_file_and_line_however_long_the_problem_is() -> None:
    broken = broken_policy("team", Problem("team.yaml", 3, "share.maximum", "x" * 500))
    deny = denied(pod("0.2"), msgspec.structs.replace(policies(), namespaces={"team": broken}))
    assert "(team.yaml:3)" in deny.message
