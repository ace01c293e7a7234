"""Who holds what by one list of the kubelet's, and what that says of what was known before."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from plugin.device_plugin.holder import ENDED_OR_NOT, Holder, parsed
from plugin.device_plugin.kubelet_record import has_dropped
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.shares.parts_file import Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What the kubelet says of the time at which it was asked."""

    containers: Mapping[str, str]  # by ID: namespace/pod/container
    without_any: frozenset[int]  # hashes of the names of containers that have no vGPU: there can be very many
    resources: Mapping[str, str]  # by ID: as which the container has it, where the kubelet says so
    asked_seconds: float

    @classmethod
    def of(cls, tenants: Iterable[Tenant], *, asked_seconds: float) -> "Listing":
        """Take over what the kubelet has named."""
        tenants = tuple(tenants)
        return cls(
            containers={str(vgpu): tenant.name for tenant in tenants for vgpu in tenant.vgpus},
            without_any=frozenset(hash(tenant.name) for tenant in tenants if not tenant.vgpus),
            resources={str(vgpu): name for tenant in tenants for vgpu, name in tenant.resources.items()},
            asked_seconds=asked_seconds,
        )

    def without(self, offered: Mapping[str, str], held: Collection[str]) -> "Listing":
        """Leave out what nobody holds by now: it was *offered* as a resource since the kubelet was asked."""
        gone = {text for text, resource in offered.items() if self.resources.get(text, "") in ("", resource)} - {*held}
        return replace(self, containers={text: one for text, one in self.containers.items() if text not in gone})

    def has(self, text: str, holder: Holder) -> bool:
        """
        Whether it names the container that has a vGPU, or had it when an earlier kubelet named that.

        A kubelet that has lost its checkpoint names its containers still, and no vGPUs of theirs.
        """
        return text in self.containers or (holder.is_forgotten and hash(holder.known_as) in self.without_any)

    def has_lost(self, text: str, holder: Holder, *, is_whole: bool, may_have: Callable[[str], bool]) -> bool:
        """
        Whether the kubelet has no container for a vGPU any more that it does not name here.

        *is_whole* says whether it has named all by now, and *may_have* what is in its checkpoint.
        """
        if holder.container is None:
            return has_dropped(holder)
        if holder.container == ENDED_OR_NOT:  # this kubelet has not named it yet, and may have it
            return is_whole and not may_have(text) and not self.has(text, holder)
        return True

    def pods(self, held: Mapping[str, Holder]) -> dict[int, str]:
        """Name a container of each pod that it names, by the number that what is *held* has of the pod."""
        return {held[text].pod: name for text, name in self.containers.items() if text in held and held[text].pod}

    @property
    def names(self) -> frozenset[int]:
        """All containers that it names, by the hashes of their names."""
        return self.without_any.union(map(hash, self.containers.values()))

    def is_growing(self, held: Mapping[str, Holder], before: Collection[int]) -> bool:
        """
        Whether it names what an earlier list of the same kubelet did not, and that kubelet has not given away.

        *before* is whom that named: where the kubelet does not know what its containers have, any that is new counts.
        """
        if any((one := held.get(text)) is None or one.container == ENDED_OR_NOT for text in self.containers):
            return True
        return any(one.is_forgotten for one in held.values()) and not self.names.issubset(before)

    def is_unknown(self, held: Mapping[str, Holder]) -> bool:
        """Whether something is held of which nobody knows on which GPU it is."""
        return not all(one.gpu for one in held.values()) or not held.keys() >= self.containers.keys()

    def held(
        self,
        before: Mapping[str, Holder],
        *,
        has_ended: Callable[[str, Holder], bool],
        answers: Mapping[VGpuId, Held],
    ) -> dict[str, Holder]:
        """
        Say who holds what, by what was known *before*.

        *has_ended* says of a vGPU that it does not name whether that is free therefore, and *answers*, of one of which
        nobody knows on which GPU it is, what the kubelet has of our answer.
        """
        held = {text: one for text, one in before.items() if text in self.containers or not has_ended(text, one)}
        held |= {text: self._named(text, before.get(text)) for text in self.containers}
        ended = {one.pod for text, one in before.items() if text not in held and one.container is not None}
        ended -= {0, *(one.pod for one in held.values() if one.container is not None)}
        return {text: _located(text, one, answers) for text, one in held.items() if one.pod not in ended}

    def _named(self, text: str, holder: Holder | None) -> Holder:
        container, resource = self.containers[text], self.resources.get(text, "")
        if holder is None:
            return Holder(container=container, since_seconds=self.asked_seconds, resource=resource)
        holder = holder if holder.resource else replace(holder, resource=resource)
        if holder.container not in (None, ENDED_OR_NOT, container):
            return replace(holder, container=container, since_seconds=self.asked_seconds, pod_uid="")
        if holder.container is None and holder.since_seconds > self.asked_seconds:
            return holder
        return replace(holder, container=container, known_as="", is_forgotten=False)


def _located(text: str, holder: Holder, answers: Mapping[VGpuId, Held]) -> Holder:
    """Say on which GPU a vGPU is, and what part of it, where only the kubelet has kept it."""
    vgpu = parsed(text)
    answer = answers.get(vgpu) if vgpu and not holder.gpu else None
    if vgpu is None or answer is None or answer.gpu is None:
        return holder
    resource = holder.resource or answer.resource
    gpu = answer.gpu or vgpu.gpu_uuid
    return replace(
        holder,
        resource=resource,
        of=answer.of,
        gpu=gpu,
        also=answer.also,
        pod_uid=holder.pod_uid or answer.pod_uid,
        by_cdi=answer.by_cdi,
    )
