"""Policies whose shares are partitions in hardware, and what containers are given of them."""

from typing import Any

from policies.grant import Grant
from policies.policy_set import PolicySet
from tests.policies.pods import policies

CLUSTER = """
partitions:
  h100:
  - {share: "1", resource: nvidia.com/gpu}
  - {share: "0.125", resource: nvidia.com/mig-1g.10gb}
  - {share: "0.25", resource: nvidia.com/mig-2g.20gb}
  mi300x: [{share: "0.125", resource: amd.com/cpx_nps4}, {share: "1", resource: amd.com/gpu}]
  gaudi: [{share: "1", resource: habana.ai/gaudi}]
  small: [{share: "0.125", resource: nvidia.com/mig-1g.10gb}]
"""
SMALL, MEDIUM, WHOLE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb", "nvidia.com/gpu"


def by(name: str = "h100", rules: str = "share: {maximum: '8', podMaximum: '8'}") -> PolicySet:
    return policies(f"strategy: partition\npartition: {name}\n{rules}", CLUSTER)


def asked(decision: Any) -> dict[str, tuple[str, int]]:
    assert isinstance(decision, Grant), decision
    return {one.slot.name: (one.resource, one.quantity) for one in decision.containers}
