"""
The CDI specifications of a node's resources: a device for all that can be allocated, and for all that containers hold.

A container that starts again asks for the device that it was given, whatever its resource is called by now, into how
many vGPUs its GPU is divided, and by which way GPUs are handed over. So a device goes when nobody holds it, and stays
as long as nobody knows whether somebody does.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu
from plugin.shares import cdi, cdi_directory
from plugin.shares.cdi import Grid
from plugin.shares.cdi_form import is_ours
from plugin.shares.handover import HandoverSettings
from plugin.shares.strategy import Mps, Sharing, led
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_STAYS = "CDI devices that no container needs stay until they can be removed"


class HeldGrid(NamedTuple):
    """What containers hold parts of."""

    resource: str  # as which; empty where nobody says
    gpu_uuid: str
    of: int  # vGPUs that the GPU was divided into for it
    by_cdi: bool  # whether they were given a CDI device for it, as far as anybody knows


class HeldGrids(NamedTuple):
    """All that containers hold parts of."""

    grids: frozenset[HeldGrid] = frozenset()
    is_complete: bool = False  # nobody holds anything else


class _Wanted(NamedTuple):
    """What one specification is to have."""

    grids: tuple[Grid, ...]
    unseen: frozenset[str]  # names of devices of GPUs that are not known now: they stay as they are
    left_mps: frozenset[str]  # of GPUs that are not shared by MPS now: those that limit by MPS stay as they are
    is_all: bool  # nobody needs any other device


class Specifications:
    """
    Writes them, and keeps them as they should be. One thread at a time calls.

    *held* says what containers hold. Without `cdi` among the ways, that is all that there is a device for.

    Devices lead to where the MPS daemons serve: containers that start again need it. Where new containers are told
    another place, none gets a vGPU, since its GPU has a fault.
    """

    def __init__(
        self,
        settings: HandoverSettings,
        held: Callable[[], HeldGrids] = HeldGrids,
    ) -> None:
        self._directory = settings.cdi_dir
        self._is_way = "cdi" in settings.ways  # a moment earlier than there, when it becomes one
        self._held = held
        self._mps = settings.mps
        self._serving: Mps | None = None  # where devices lead; None for where their grids say
        self._gpus: Mapping[str, tuple[Gpu, Sharing]] = {}
        self._advertised: dict[str, tuple[Grid, ...]] = {}
        self._written: dict[str, tuple[_Wanted, bytes]] = {}
        self._kept: frozenset[str] = frozenset()  # when others were last removed
        self._warn = WarnOnce(_log)

    def see(self, gpus: Mapping[str, tuple[Gpu, Sharing]]) -> None:
        """
        Take up which GPUs there are, by UUID, and how each is shared: also those that nobody is given vGPUs of.

        Raises:
            HandoverError: If devices cannot lead to where MPS daemons serve by now.
        """
        self._gpus = gpus
        before, self._serving = self._serving, self._mps()
        if self._serving != before and self._advertised:
            self.restore()  # before the kubelet hears that they are healthy

    def begin(self, advertised: Mapping[str, Sequence[Grid]]) -> None:
        """
        Have ready what containers are going to need of all that is *advertised*, by resource: `cdi` becomes a way.

        Raises:
            HandoverError: If that cannot be; it does not become one.
        """
        self._is_way = True
        try:
            for resource, grids in advertised.items():
                self.advertise(resource, grids)
        except HandoverError:
            self.end()
            raise

    def end(self) -> None:
        """Keep what containers hold, and no more: `cdi` is no way any longer."""
        self._is_way = False
        self._advertised.clear()

    def advertise(self, resource: str, grids: Sequence[Grid]) -> None:
        """
        Have ready what containers of *resource* are going to need, beside what others hold of it.

        Call it before the kubelet hears of the GPUs of *grids*: it may allocate a vGPU at once.

        Raises:
            HandoverError: If that cannot be; what was advertised before stays.
        """
        if not self._is_way:
            return
        before = self._advertised.get(resource, ())
        self._advertised[resource] = tuple(grids)
        try:
            self._write(resource, self._wanted(resource, self._held()))
        except HandoverError:
            self._advertised[resource] = before
            raise

    def narrow(self, resource: str, grids: Sequence[Grid]) -> None:
        """Have no more ready than *grids* of what was advertised of *resource*; `restore` tries again what fails."""
        if not self._is_way:
            return
        self._advertised[resource] = tuple(grids)
        try:
            self._write(resource, self._wanted(resource, self._held()))
        except HandoverError as error:
            self._warn(_STAYS, str(error))

    def restore(self) -> None:
        """
        Have all ready that containers need, also what somebody has removed or changed, and nothing that nobody does.

        Raises:
            HandoverError: If that cannot be, and new containers need it too.
        """
        try:
            self._restore()
        except HandoverError as error:
            if self._is_way:
                raise
            self._warn("containers that were given a CDI device by an earlier run may not start again", str(error))

    def _restore(self) -> None:
        held = self._held()
        needed = frozenset(one.resource for one in held.grids if one.resource and self._counts(one))
        needed |= {resource for resource, grids in self._advertised.items() if grids}
        for resource in sorted(needed):
            self._write(resource, self._wanted(resource, held))
        self._written = {resource: one for resource, one in self._written.items() if resource in needed}
        if self._is_way and held.is_complete and needed != self._kept:
            try:
                cdi_directory.remove_stale(self._directory, needed)
            except HandoverError as error:
                self._warn(_STAYS, str(error))
            else:
                self._kept = needed

    def _counts(self, one: HeldGrid) -> bool:
        return one.by_cdi or self._is_way

    def _wanted(self, resource: str, held: HeldGrids) -> _Wanted:
        grids = {(grid.gpu.uuid, grid.of): grid for grid in self._advertised.get(resource, ())}
        here = {uuid for uuid, _ in grids}
        known = {**self._gpus, **{one.gpu.uuid: one[:2] for some in self._advertised.values() for one in some}}
        unseen: set[str] = set()
        left_mps: set[str] = set()
        for one in sorted(filter(self._counts, held.grids)):
            if one.resource != resource and (one.resource or one.gpu_uuid not in here):
                continue
            if (one.gpu_uuid, one.of) in grids:
                continue
            names = cdi.device_names(one.gpu_uuid, one.of)
            if one.gpu_uuid not in known:
                unseen.update(names)
                continue
            grids[one.gpu_uuid, one.of] = made = Grid(*known[one.gpu_uuid], one.of)
            if not isinstance(made.sharing, Mps):
                left_mps.update(names)
        is_all = self._is_way and held.is_complete
        return _Wanted(tuple(map(self._led, grids.values())), frozenset(unseen), frozenset(left_mps), is_all)

    def _led(self, grid: Grid) -> Grid:
        return grid._replace(sharing=led(grid.sharing, self._serving))

    def _write(self, resource: str, wanted: _Wanted) -> None:
        before, content = self._written.get(resource, (None, b""))
        if wanted == before:
            if content:
                cdi_directory.restore_specification(self._directory, resource, content)
            return
        content = content or cdi_directory.read_specification(self._directory, resource)
        there = cdi.devices_in(content, resource)
        kept = [one for one in there if not wanted.is_all or one.name in wanted.unseen]
        as_given = [one for one in there if one.name in wanted.left_mps and cdi.limits_by_mps(one)]
        made = b""
        if wanted.grids or kept:  # a specification without devices is no valid one
            made = cdi.specification(resource, wanted.grids, kept=kept, as_given=as_given)
            try:
                cdi_directory.write_specification(self._directory, resource, made)
            except HandoverError as error:
                if not self._has_all_of(made, resource):
                    raise
                self._warn(_STAYS, str(error))
                return  # it is tried again at the next look
        self._written[resource] = wanted, made

    def _has_all_of(self, made: bytes, resource: str) -> bool:
        """Whether the one that is there is ours, and merely has more devices than a specification is to have."""
        content = cdi_directory.read_specification(self._directory, resource)
        there = cdi.devices_in(content, resource)
        return is_ours(content, resource) and all(one in there for one in cdi.devices_in(made, resource))
