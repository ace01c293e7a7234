from pathlib import Path

import pytest

from plugin.gpus.pci import PciBus
from tests.plugin.health.simulated_time import pci_device

GPU = "0000:3b:00.0"


def test_nvidias_gpus_are_listed_with_their_driver_and_nothing_else(tmp_path: Path) -> None:
    pci_device(tmp_path, GPU)
    pci_device(tmp_path, "10000:01:00.0", driver="vfio-pci")
    (pci_device(tmp_path, "0000:05:00.0") / "driver").unlink()
    (pci_device(tmp_path, "0000:06:00.0") / "class").write_text("0x040300\n")  # its sound
    (pci_device(tmp_path, "0000:07:00.0") / "class").write_bytes(b"\xff")
    pci_device(tmp_path, "0000:00:02.0", vendor="0x8086")
    assert PciBus(tmp_path).gpus() == {GPU: "nvidia", "10000:01:00.0": "vfio-pci", "0000:05:00.0": ""}


def test_a_device_that_comes_or_goes_or_changes_hands_is_seen(tmp_path: Path) -> None:
    bus = PciBus(tmp_path)
    assert bus.gpus() == {}
    device = pci_device(tmp_path, GPU)
    assert bus.gpus() == {GPU: "nvidia"}
    (device / "driver").unlink()
    (device / "driver").symlink_to("../../drivers/vfio-pci")
    assert bus.gpus() == {GPU: "vfio-pci"}
    device.rename(tmp_path / "away")
    assert bus.gpus() == {}


@pytest.mark.parametrize("sysfs", [None, Path("/nowhere")])
def test_a_machine_that_says_nothing_of_its_bus_may_have_more(sysfs: Path | None) -> None:
    bus = PciBus(sysfs)
    assert bus.gpus() == {}
    assert bus.may_have_more({GPU})
    assert bus.may_have_more(set())


def test_more_can_be_reached_only_where_a_device_answers_that_nvidias_driver_has(tmp_path: Path) -> None:
    bus = PciBus(tmp_path)
    pci_device(tmp_path, GPU)
    assert not bus.may_have_more({GPU, None})
    assert bus.may_have_more(set())
    other = pci_device(tmp_path, "0000:3c:00.0")
    assert bus.may_have_more({GPU})
    (other / "config").write_bytes(b"\xff\xff\xff\xff")
    assert not bus.may_have_more({GPU})
    (other / "config").unlink()
    assert bus.may_have_more({GPU})
    (other / "driver").unlink()
    assert not bus.may_have_more({GPU})
