"""A simulated container runtime's half of CDI: what the devices that a container was given bring into it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from plugin.simulated.device_manager import Received, ReceivedMount


def with_cdi_devices(received: Received, directory: Path) -> Received:
    """
    Apply the CDI devices of *received*, whose specifications the plugin has written into *directory*.

    Raises:
        KeyError: If no specification there has one of them; a runtime does not start such a container.
    """
    known = {
        f"{specification['kind']}={device['name']}": device["containerEdits"]
        for path in sorted(directory.glob("*.json"))
        for specification in [msgspec.json.decode(path.read_bytes())]
        for device in specification["devices"]
    }
    environment, mounts = dict(received.environment), {one.container_path: one for one in received.mounts}
    for name in received.cdi_devices:
        edits = known[name]
        environment.update(entry.split("=", 1) for entry in edits.get("env", ()))
        mounts.update((one["containerPath"], _mount(one)) for one in edits.get("mounts", ()))
    return replace(received, environment=environment, mounts=tuple(mounts.values()))


def _mount(edit: dict[str, Any]) -> ReceivedMount:
    return ReceivedMount(
        host_path=edit["hostPath"], container_path=edit["containerPath"], read_only="ro" in edit.get("options", ())
    )
