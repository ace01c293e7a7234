"""What the real command tells of a kubelet that does not register it; half a minute is made half a second."""

import subprocess
import sys
from pathlib import Path

import grpc

from plugin.device_plugin.v1beta1 import api_pb2
from plugin.health.state import NotRegistered, read_node_health
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.health.published import status
from tests.plugin.plugin_process import ROOT
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
PROGRAM = (
    "import gpu_share\n"
    "from plugin.device_plugin import standing\n"
    "standing.LASTS_SECONDS, standing._STEADY_SECONDS = 0.5, 0.5\n"
    "gpu_share.main()"
)


class Kubelet(SimulatedKubelet):
    rejects = True

    def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
        if self.rejects:
            context.abort(grpc.StatusCode.UNKNOWN, "failed to dial device plugin")
        return super().Register(request, context)


def test_status_is_1_with_the_reason_until_the_kubelet_registers_the_plugin(directory: Path, tmp_path: Path) -> None:
    places = ["--kubelet-dir", str(directory), "--state-dir", str(tmp_path), "--cdi-dir", str(tmp_path / "cdi")]
    command = [sys.executable, "-c", PROGRAM, "plugin", "--simulate", "1xL4", *places]
    with (
        Kubelet(directory) as kubelet,
        subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process,
    ):
        try:
            wait_until(lambda: [one.resource for one in known(tmp_path)] == [NAME])
            ran = status(tmp_path)
            assert (ran.returncode, ran.stderr) == (1, "")
            assert "none of them unhealthy" in ran.stdout
            said = "the call to the kubelet failed: UNKNOWN: failed to dial device plugin: see the kubelet's log"
            assert f"not registered: no pod gets any {NAME}: {said}" in ran.stdout
            kubelet.rejects = False
            wait_until(lambda: known(tmp_path) == ())
            assert status(tmp_path).returncode == 0
        finally:
            process.terminate()


def known(state_dir: Path) -> tuple[NotRegistered, ...]:
    told = read_node_health(state_dir)
    return told.not_registered if told else ()
