"""What the fit guards of all resources say together."""

from collections.abc import Iterable, Sequence

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.service import Resource
from plugin.health.state import FitGuardState, GpuRoom


def fit_guard_state(resources: Iterable[Resource]) -> FitGuardState:
    """Say what is free of each GPU of those that have a guard, and what of it is hidden; from any thread."""
    guarded = [one for one in resources if one.devices.is_guarded]
    rooms = [(resource.name, room) for resource in guarded for room in resource.devices.rooms()]
    return FitGuardState(
        gpus=tuple(GpuRoom(uuid=one.gpu_uuid, resource=name, free=one.free, hidden=one.hidden) for name, one in rooms),
        unknown=_unknown([one.devices for one in guarded]),
    )


def _unknown(guarded: Sequence[Devices]) -> str:
    """Say why it is not known what is free; nothing if it is."""
    if not all(one.is_known for one in guarded):
        return "the kubelet has not said yet who holds which"
    if any(one.is_lost for one in guarded):
        return "no checkpoint says on which GPUs some containers are: nothing is free until these have ended"
    return ""
