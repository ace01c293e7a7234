"""All policies of one state of the directory, as the decision sees them."""

import msgspec

from policies.cluster import Cluster
from policies.contract import NAMESPACE
from policies.device_names import is_instance
from policies.frameworks.detection import Catalogue
from policies.policy import EffectivePolicy, Source


class PolicySet(msgspec.Struct, frozen=True):
    """What holds for every namespace. A look-up costs the same however many there are."""

    cluster: Cluster
    catalogue: Catalogue
    default: EffectivePolicy
    namespaces: dict[str, EffectivePolicy]
    written_host_paths: dict[str, Source] = {}  # what pods of any namespace may write, and which file says so

    def of(self, namespace: str) -> EffectivePolicy:
        """The policy of *namespace*: its own file's, else `_default.yaml`'s. It may be a broken one."""
        return self.namespaces.get(namespace, self.default)

    @property
    def instances(self) -> frozenset[str]:
        """The devices that the policies name and that are MIG instances."""
        every = (self.default, *self.namespaces.values())
        return frozenset(device for one in every for device in one.policy.shared_devices if is_instance(device))

    def exemption(self, namespace: str) -> str:
        """Say why pods of *namespace* are admitted unchanged, whatever they ask for; empty if they are not."""
        if namespace == NAMESPACE:
            return (
                f"the namespace {namespace} is gpu-share's own, and the API server never asks gpu-share about its pods"
            )
        if namespace in self.cluster.exempt_namespaces:
            return f"the namespace {namespace} is exempt (_cluster.yaml: exemptNamespaces)"
        return ""

    def is_exempt(self, namespace: str) -> bool:
        """Whether pods of *namespace* are admitted unchanged."""
        return bool(self.exemption(namespace))
