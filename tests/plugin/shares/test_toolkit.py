"""What is known of the settings of NVIDIA's container toolkit, whatever its file says."""

from pathlib import Path

import pytest

from plugin.shares.handover import handover_settings
from plugin.shares.toolkit import ToolkitConfiguration
from policies.contract import Handover
from policies.node_state import Toolkit

SETTING = "accept-nvidia-visible-devices-envvar-when-unprivileged"
SHIPPED = f"""\
#{SETTING} = false
supported-driver-capabilities = "compat32,compute,utility"
[nvidia-container-runtime]
mode = "auto"
{SETTING} = false
"""


def configuration(root: Path, way: Handover = "cdi") -> ToolkitConfiguration:
    handover = handover_settings([way], cdi_dir=root / "cdi", static_dir=root / "etc-cdi")
    return ToolkitConfiguration(root / "config.toml", lambda: handover.needs_variable)


@pytest.mark.parametrize(
    ("content", "accepts"),
    [
        (SHIPPED.encode(), True),  # what is a comment, or in another table, is not said
        (f"{SETTING} = false\n{SHIPPED}".encode(), False),
        (f"{SETTING} = true".encode(), True),
        (f'{SETTING} = "no"'.encode(), None),
        (b"[[[", None),
        (b"\xff", None),
        (b"a = " + b"[" * 5000, None),
        (f"{SETTING} = true\n#{'x' * 70_000}".encode(), None),
    ],
)
def test_whether_the_variable_is_accepted_is_known_from_a_file_that_says_it(
    tmp_path: Path,
    content: bytes,
    accepts: bool | None,  # noqa: FBT001 - of a table
) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    assert configuration(tmp_path).look().accepts_variable is accepts


def test_a_file_that_comes_changes_and_goes_is_followed(tmp_path: Path) -> None:
    path, known = tmp_path / "config.toml", configuration(tmp_path)
    said = [known.look().accepts_variable]
    for content in (f"{SETTING} = true", f"{SETTING} = false"):
        path.write_text(content)
        said.append(known.look().accepts_variable)
    path.unlink()
    assert [*said, known.look().accepts_variable] == [None, True, False, None]


def test_the_variable_is_needed_unless_devices_bring_the_gpu(tmp_path: Path) -> None:
    """By CDI it is as long as NVIDIA's own device of some GPU is missing."""
    ways: tuple[Handover, ...] = ("envvar", "cdi", "devices")
    needed = [configuration(tmp_path, way).look() for way in ways]
    assert needed == [Toolkit(variable_needed=one) for one in (True, True, False)]
