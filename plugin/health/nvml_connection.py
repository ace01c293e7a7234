"""
One run of NVML, from its start to its end: how the GPUs are, and what the driver tells of them.

Newer calls are optional, and one broken GPU must not hide the others. Handles are worth nothing in the next run.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plugin.gpus.discovery import driver_version, listed, not_shared
from plugin.gpus.gpu import Gpu
from plugin.gpus.mig import Instances, list_instances, placed, shareable_instances
from plugin.gpus.nvml import AWAY, NvmlHealth, if_answered, number_of, raise_if_nvml_failed
from plugin.gpus.reading import (
    Check,
    NotShareableError,
    any_gpu,
    errors_of_one,
    in_mig_mode,
    minor_of,
    pci_address,
    reach,
    read_gpu,
    read_whole,
)
from plugin.gpus.topology import read_links
from plugin.health.nvml_events import NvmlEvents
from plugin.health.recovery_action import recovery_action
from plugin.health.reports import Look, Probe


@dataclass(slots=True)
class KnownGpus:
    """What outlives a run of NVML."""

    gpus: dict[str, Gpu] = field(default_factory=dict)  # by UUID: all that could be shared once
    addresses: dict[str, str | None] = field(default_factory=dict)  # by UUID: on the PCI bus
    uuids: dict[int, str] = field(default_factory=dict)  # by NVML's number, when it last said
    check: Check = any_gpu  # of those that are new
    expected: frozenset[str] = frozenset()  # by UUID: physical GPUs of before, whether or not NVML lists them


class NvmlConnection:
    """NVML while it is initialised; *clock* is that of the reports. Every call but `close` raises NVML's errors."""

    def __init__(
        self, nvml: NvmlHealth, known: KnownGpus, *, generation: int, clock: Callable[[], float], sysfs: Path
    ) -> None:
        self._nvml = nvml
        self._known = known
        self._generation = generation
        self._clock = clock
        self._sysfs = sysfs
        self._handles: dict[str, Any] = {}  # of the GPUs that the last probe has reached, by UUID
        self._driver = ""  # its version, once it is known
        self.events = NvmlEvents(nvml, clock=clock)
        self._away: set[str] = set()  # the GPUs that a probe of this run has found lost, or not at all
        self.misses_some = False  # the last probe did not reach all GPUs that are listed, known or expected, or none

    @property
    def reached(self) -> frozenset[str]:
        """The GPUs that the last probe has reached."""
        return frozenset(self._handles)

    @property
    def found_some_again(self) -> bool:
        """Whether a GPU is back that was away in this run: if the next one finds it as well, it was reset."""
        return not self._away.isdisjoint(self._handles)

    def probe(self, *, events_failure: str = "") -> Probe:
        """
        Look at all GPUs; fails only where NVML as a whole does.

        *events_failure* says why events cannot be waited for; empty where they can.
        """
        found = listed(self._nvml)
        handles, uuids, errors = found.handles, found.uuids, found.errors
        looks = {
            uuid: self._look(handles[index], events_failure or self.events.failure(uuid))
            for index, uuid in uuids.items()
        }
        # A GPU that cannot say who it is: NVML keeps its number.
        for index in tuple(errors):
            uuid = self._known.uuids.get(index)
            if uuid is not None and uuid not in looks:
                looks[uuid] = _unreached(errors.pop(index))
        self._known.uuids.update(uuids)
        instances = self._look_at_instances(uuids, handles, looks)
        errors |= self._get_to_know(uuids, handles, instances, looks)
        self._handles = {uuid: handles[index] for index, uuid in uuids.items() if not looks[uuid].problem}
        physical = {gpu.physical_uuid for gpu in self._known.gpus.values()} | self._known.expected
        self._away |= {uuid for uuid in {*physical, *uuids.values()} if uuid not in looks or looks[uuid].away}
        failed = any(number_of(error) is not None for error in errors.values())
        self.misses_some = failed or not self._handles or not physical <= self._handles.keys()
        return Probe(
            seconds=self._clock(),
            generation=self._generation,
            looks=looks,
            gpus=tuple(
                gpu
                for uuid, look in looks.items()
                if (gpu := self._known.gpus.get(uuid)) and look.profile in ("", gpu.profile)
            ),
            skipped=tuple(not_shared(index, found.count, errors[index]) for index in sorted(errors)),
            driver=self._driver_version(),
        )

    def listen(self) -> frozenset[str]:
        """
        Have the driver tell of the GPUs that were reached; nothing happens if it does already.

        Returns:
            The GPUs that it tells nothing of.
        """
        return self.events.listen(self._handles)

    def close(self) -> None:
        """End NVML, as far as it lets us."""
        self.events.stop()
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _driver_version(self) -> str:
        if not self._driver:  # a text for people, no reason to fail
            with suppress(UnicodeDecodeError):
                self._driver = driver_version(self._nvml)
        return self._driver

    def _look(self, handle: Any, events_failure: str) -> Look:
        try:
            is_cut = bool(if_answered(self._nvml, lambda: in_mig_mode(self._nvml, handle)))
            reach(self._nvml, handle, is_cut=is_cut)
            action = if_answered(self._nvml, lambda: recovery_action(self._nvml, handle))
            return Look(
                in_mig_mode=is_cut,
                recovery_action=action,
                events_failure=events_failure if action is None else "",
                compute_mode=if_answered(self._nvml, lambda: self._nvml.nvmlDeviceGetComputeMode(handle)),
                energy_mj=if_answered(self._nvml, lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
            )
        except self._nvml.NVMLError as error:
            return _unreached(raise_if_nvml_failed(error))

    def _look_at_instances(
        self, uuids: Mapping[int, str], handles: Mapping[int, Any], looks: dict[str, Look]
    ) -> dict[int, Instances]:
        """List the MIG instances of each GPU by its number; *looks* gets those at the instances: as their GPU is."""
        listed_of: dict[int, Instances] = {}
        for index, uuid in uuids.items():
            if looks[uuid].in_mig_mode:
                try:
                    listed_of[index] = list_instances(self._nvml, handles[index])
                except self._nvml.NVMLError as error:
                    looks[uuid] = _unreached(raise_if_nvml_failed(error))
        for gpu in self._known.gpus.values():
            look = looks.get(gpu.physical_uuid)
            if gpu.instance and look is not None and look.problem:
                looks[gpu.uuid] = look
        for index, instances in listed_of.items():
            look = looks[uuids[index]]
            for one in instances.listed:
                looks[one.uuid] = replace(look, in_mig_mode=False, profile=one.profile, compute_mode=None)
        return listed_of

    def _get_to_know(
        self,
        uuids: Mapping[int, str],
        handles: Mapping[int, Any],
        instances: Mapping[int, Instances],
        looks: Mapping[str, Look],
    ) -> dict[int, Exception]:
        """Read the GPUs and MIG instances that are new; why not, by number, for those that cannot be shared."""
        errors: dict[int, Exception] = {}
        new: list[str] = []
        for index, uuid in uuids.items():
            known = self._known.gpus.get(uuid)
            if known is not None:
                self._known.gpus[uuid] = self._renewed(known, index, handles[index])
            try:
                if uuid not in self._known.addresses:  # first: one that is not shared is not missing either
                    self._known.addresses[uuid] = pci_address(self._nvml, handles[index])
                if index in instances:
                    self._get_to_know_instances(index, handles[index], instances[index])
                elif known is None:
                    self._known.gpus[uuid] = self._read_new(index, handles[index], problem=looks[uuid].problem)
                    new.append(uuid)
            except errors_of_one(self._nvml) as error:
                errors[index] = raise_if_nvml_failed(error)
        reached = {uuid: handles[index] for index, uuid in uuids.items() if uuid in self._known.gpus}
        for uuid in new:
            links = read_links(self._nvml, reached, of=uuid)
            self._known.gpus[uuid] = replace(self._known.gpus[uuid], links=links)
        return errors

    def _read_new(self, index: int, handle: Any, *, problem: str) -> Gpu:
        """
        Read a GPU that is shared itself.

        Raises:
            NotShareableError: If it cannot be shared.
        """
        gpu = read_whole(self._nvml, index, handle, problem=problem, sysfs=self._sysfs)
        self._known.check(gpu)
        return gpu

    def _get_to_know_instances(self, index: int, handle: Any, instances: Instances) -> None:
        """
        Read the MIG instances that are new, and what can change of the others.

        Raises:
            NotShareableError: If some cannot be shared; the others are known then.
        """
        known_before: set[str] = set()
        for one in instances.listed:
            known = self._known.gpus.get(one.uuid)
            if known is not None and known.profile == one.profile:
                self._known.gpus[one.uuid] = placed(self._renewed(known, index, handle), one, before=known)
                known_before.add(one.uuid)
        if all(one.uuid in known_before for one in instances.listed) and instances.listed:
            if instances.problems:
                raise NotShareableError("; ".join(instances.problems))
            return
        gpu = read_gpu(self._nvml, index, handle, is_cut=True, sysfs=self._sysfs)
        found, why = shareable_instances(self._nvml, gpu, handle, instances, check=self._known.check, but=known_before)
        self._known.gpus.update({one.uuid: one for one in found})
        if why:
            raise NotShareableError(why)

    def _renewed(self, known: Gpu, index: int, handle: Any) -> Gpu:
        """Read what can change: a driver that is loaded anew without one GPU numbers the others anew."""
        try:
            minor = minor_of(self._nvml, handle)
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            return known
        return replace(known, index=index, minor=known.minor if minor is None else minor)


def _unreached(error: Exception) -> Look:
    return Look(problem=str(error), away=number_of(error) in AWAY)
