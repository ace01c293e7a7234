"""What only `gpu-share doctor` looks at: API server, installation and policies. None is what cannot be seen."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from console.doctor.admission import AdmissionPolicy, Binding, WebhookConfiguration
from console.doctor.versions import may_be_of_later, newer_version, other_version
from console.dra_objects import DeviceClass, ResourceSlice
from console.objects import Metadata
from console.seen import Seen, Unseen
from console.words import Shown, moment
from policies.contract import NAMESPACE
from policies.errors import Problem
from policies.policy_set import PolicySet

SUCCEEDED: Final = range(200, 300)  # of HTTP


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a pod with an invalid share that was to be created, with nothing created."""

    namespace: str
    status: int
    message: Shown


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    seen: Seen
    program: str = ""  # version of the gpu-share that looks
    version: Shown | None = None  # of the API server
    apis: frozenset[str] | None = None  # such as resource.k8s.io/v1
    gates: dict[str, bool] | None = None  # of the API server: whether they are enabled
    classes: tuple[DeviceClass, ...] | None = None
    slices: tuple[ResourceSlice, ...] | None = None
    toolkits: dict[str, str] | None = None  # by node: the version that NVIDIA's GPU Operator has installed
    lacking_rights: tuple[str, ...] | None = None  # of those to install
    webhook: WebhookConfiguration | None = None
    has_webhook: bool | None = None  # False if it is known not to be there
    admission_policies: dict[str, AdmissionPolicy] | None = None  # by name
    bindings: tuple[Binding, ...] | None = None  # of admission policies
    attempt: Attempt | None = None
    ready: dict[str, str] = {}  # what /readyz of each webhook pod says
    serving_certificate: bytes | None = None  # PEM
    policies: PolicySet | None = None
    policy_problems: tuple[str, ...] | None = None
    config_map_keys: dict[str, frozenset[str]] = {}  # of those in the namespace of gpu-share, by name
    namespaces: dict[str, Metadata] | None = None  # by name
    unseen: dict[str, Unseen] = {}  # by the name of the field

    @property
    def now(self) -> datetime:
        """When it was looked at, by the API server's clock."""
        return moment(self.seen.at) or datetime.now(UTC)

    @property
    def other_version(self) -> str:
        """Say which gpu-share a node or a webhook runs, where that is not this one; empty if none is known."""
        return other_version(self.seen, self.program)

    def newer_version(self, *problems: str) -> str:
        """Say it of one that may be newer, where all *problems* with policy files may be right for that one."""
        is_of_later = bool(problems) and all(may_be_of_later(one) for one in problems)
        return newer_version(self.seen, self.program) if is_of_later else ""

    @property
    def has_no_policies(self) -> bool:
        """Whether the policy files were read, and nobody knows what is in force: `_cluster.yaml` is broken, ..."""
        return self.policies is None and self.policy_problems is not None

    @property
    def broken_policies(self) -> dict[str, Problem]:
        """What is wrong, by namespace, with the files of those of which nobody knows what is in force."""
        namespaces = self.policies.namespaces if self.policies else {}
        return {name: one.broken for name, one in sorted(namespaces.items()) if one.broken is not None}

    @property
    def is_missing(self) -> bool:
        """Whether it is certain that neither its webhook nor its namespace is there."""
        return self.has_webhook is False and self.namespaces is not None and NAMESPACE not in self.namespaces

    def troubles(self, *, of_certificates: bool) -> list[str]:
        """List what webhook pods say that an administrator should mend: of certificates, or all else."""
        return [
            f"{pod}: {line}"
            for pod, said in self.ready.items()
            for line in said.splitlines()[1:]
            if ("certificate" in line.partition(":")[0]) is of_certificates
        ]

    @property
    def unheard(self) -> str:
        """Why it is not known what all webhook pods say; empty if it is."""
        if not self.ready:
            return "no webhook pod runs, or none can be seen"
        return "; ".join(f"{pod}: {said}" for pod, said in self.ready.items() if said.splitlines()[:1] != ["ready"])
