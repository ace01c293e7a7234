"""What of a GPU is held by no pod any more, and is not free: processes of a pod that was deleted by force use it."""

from policies.node_state import Gpu
from policies.share import milli_text


def outlived_text(gpu: Gpu) -> str:
    """Say how much that is; empty if it is nothing."""
    if not gpu.outlived:
        return ""
    return f"{milli_text(gpu.milli(gpu.outlived))} still used by processes of a pod that was deleted by force"
