"""What a plugin could have written, and the command that reads it."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from plugin.health.state import GpuHealth, NodeHealth
from plugin.state_files import boot_id, boot_seconds

ROOT = Path(__file__).parents[3]


def ago(**duration: float) -> str:
    return (datetime.now(UTC) - timedelta(**duration)).isoformat()


def healthy(index: int, **replaced: object) -> GpuHealth:
    gpu = GpuHealth(uuid=f"GPU-{index}", index=index, model="H200", resource="gpu-share.dev/vgpu", since=ago(hours=3.5))
    return msgspec.structs.replace(gpu, **replaced)


def node(*gpus: GpuHealth, **replaced: object) -> NodeHealth:
    made = NodeHealth(boot_id=boot_id(), heartbeat_seconds=boot_seconds(), pid=7, driver="580.95.05", gpus=gpus)
    return msgspec.structs.replace(made, **replaced)


def status(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "gpu_share",
            "plugin",
            "status",
            "--state-dir",
            str(directory),
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
