"""The policies in force as the page shows them: each field with its value, and the file and line that say so."""

from collections.abc import Sequence

import msgspec

from console.seen import Unseen
from console.words import KEPT, Shown
from policies.policy_set import PolicySet
from policies.reading.reference import fields


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """The policies of a cluster, as far as they can be read."""

    in_force: PolicySet | None = None
    source: str = ""  # the ConfigMaps
    problems: tuple[str, ...] = ()  # with the files
    unseen: Unseen | None = None  # why they cannot be read


class FieldView(msgspec.Struct, frozen=True, kw_only=True):
    """A field."""

    name: str
    value: str
    place: str  # file and line
    is_written: bool  # not a built-in default


class RulesView(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of one namespace."""

    namespace: str  # empty for all that have none of their own
    policy: str  # how grants call it
    layers: str
    broken: str  # why nobody knows what it says; empty if it can be used
    kept: str  # what is in force then
    exemption: str  # why its pods are admitted unchanged; empty if they are not
    fields: tuple[FieldView, ...]
    others: tuple[str, ...]  # namespaces with a file of their own
    vgpus_per_gpu: int
    exempt: tuple[str, ...]


def rules_view(policies: PolicySet, namespace: str) -> RulesView:
    """Show the policy that holds for a namespace; without one, for all that have no file of their own."""
    policy = policies.namespaces.get(namespace, policies.default) if namespace else policies.default
    files = sorted({source.file for source in policy.sources.values()} | ({policy.file} if policy.file else set()))
    return RulesView(
        namespace=namespace,
        policy=policy.name,
        layers=_listed(files),
        broken=Shown(str(policy.broken or "")),
        kept=KEPT,
        exemption=policies.exemption(namespace),
        fields=tuple(
            FieldView(name=name, value=value, place=str(source), is_written=bool(source.file))
            for name, value, source in fields(policy)
        ),
        others=tuple(sorted(policies.namespaces)),
        vgpus_per_gpu=policies.cluster.vgpus_per_gpu,
        exempt=tuple(policies.cluster.exempt_namespaces),
    )


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files) or "no file: the built-in defaults"
