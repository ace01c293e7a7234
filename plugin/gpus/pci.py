"""NVIDIA's GPUs on the PCI bus, as the kernel lists them: a hint when to start NVML anew, which finds none later."""

from collections.abc import Collection, Mapping
from pathlib import Path

_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"  # display controllers: 0x0300.. and 0x0302..
_NVIDIA_DRIVER = "nvidia"
_NOBODY_ANSWERS = b"\xff\xff"  # what a device gives to read that has fallen off the bus


class PciBus:
    """The bus below *sysfs*; None is a machine that says nothing of its bus."""

    def __init__(self, sysfs: Path | None) -> None:
        self._devices = sysfs / "bus/pci/devices" if sysfs else None
        self._names: frozenset[str] = frozenset()
        self._gpus: tuple[Path, ...] = ()

    def gpus(self) -> Mapping[str, str]:
        """List NVIDIA's GPUs by address: the name of the kernel's driver of each, empty where it has none."""
        try:
            devices = list(self._devices.iterdir()) if self._devices else []
        except OSError:
            devices = []
        names = frozenset(device.name for device in devices)
        if names != self._names:  # to read two files of each device of a machine takes a while
            self._names = names
            self._gpus = tuple(device for device in sorted(devices) if _is_gpu(device))
        return {gpu.name: _driver(gpu) for gpu in self._gpus}

    def may_have_more(self, reached: Collection[str | None]) -> bool:
        """Whether NVML could find a GPU besides those at *reached*; True where the kernel does not say."""
        self.gpus()
        others = [gpu for gpu in self._gpus if gpu.name not in reached]
        return not self._gpus or any(_driver(gpu) == _NVIDIA_DRIVER and _answers(gpu) for gpu in others)


def _is_gpu(device: Path) -> bool:
    return _read(device / "vendor") == _NVIDIA and _read(device / "class").startswith(_DISPLAY_CLASS)


def _driver(device: Path) -> str:
    try:
        return (device / "driver").readlink().name
    except OSError:
        return ""


def _answers(device: Path) -> bool:
    try:
        with (device / "config").open("rb", buffering=0) as file:
            return file.read(len(_NOBODY_ANSWERS)) != _NOBODY_ANSWERS
    except OSError:
        return True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
