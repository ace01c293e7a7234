"""The device nodes of the NVIDIA driver, for container runtimes that do not make them in a container by themselves."""

from collections.abc import Iterable
from pathlib import Path

from plugin.gpus.gpu import Gpu

_DEV = Path("/dev")
_NEEDED = ("nvidiactl", "nvidia-uvm")  # CUDA does not start without them
_OPTIONAL = ("nvidia-uvm-tools", "nvidia-modeset")  # profilers and graphics; not every driver makes them


def common_nodes(dev: Path = _DEV) -> tuple[str, ...]:
    """
    List the nodes that a container needs whichever GPU it has, as paths on the host.

    Optional ones are listed only where they are there now: a runtime does not start a container for
    which a node is missing. *dev* is where this process sees the host's /dev.
    """
    there = (name for name in _OPTIONAL if (dev / name).exists())
    return tuple(f"{_DEV}/{name}" for name in (*_NEEDED, *there))


def nodes(gpus: Iterable[Gpu], common: tuple[str, ...]) -> tuple[str, ...]:
    """List the nodes of a container with *gpus*: *common* and the GPUs' own; none where a GPU has none (simulated)."""
    minors = [gpu.minor for gpu in gpus]
    if None in minors:
        return ()
    return (*common, *(f"{_DEV}/nvidia{minor}" for minor in minors))
