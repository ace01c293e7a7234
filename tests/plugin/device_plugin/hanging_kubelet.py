"""A kubelet that does not answer who registers."""

from pathlib import Path
from threading import Event

import grpc

from plugin.device_plugin.v1beta1 import api_pb2
from plugin.simulated.kubelet import SimulatedKubelet

_LONGEST_SECONDS = 20


class HangingKubelet(SimulatedKubelet):
    """It notes that it was called, and answers once it is released."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.called, self.release = Event(), Event()

    def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: ARG002, N802 - the protocol's
        self.called.set()
        self.release.wait(_LONGEST_SECONDS)
        return api_pb2.Empty()
