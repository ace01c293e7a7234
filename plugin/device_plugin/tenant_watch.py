"""Asks the kubelet once a second who holds what, in a thread of its own: a kubelet that hangs holds up nothing else."""

import logging
from threading import Event

from plugin.device_plugin.held import HeldVgpus
from plugin.errors import TenantsError
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_PERIOD_SECONDS = 1.0


class TenantWatch:
    """Keeps *held* as the kubelet says. Call `look` first, then `run` in a thread."""

    def __init__(self, held: HeldVgpus) -> None:
        self._held = held
        self._ending = Event()
        self._warn = WarnOnce(_log)

    def look(self) -> None:
        """Ask once."""
        try:
            self._held.refresh()
        except TenantsError as error:
            self._warn("who holds which vGPUs is not known: what was known stays", str(error))

    def run(self) -> None:
        """Go on until `stop`."""
        while not self._ending.wait(_PERIOD_SECONDS):
            self._held.quiet.wait()
            self.look()

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._ending.set()
