"""Mounts for real, each test in a mount namespace of its own; skipped where making one is not permitted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plugin.mps.mounts import Mount, mount_of, mounts, shows_to_us_alone
from tests.plugin.mps.isolated import ISOLATED, ODD_ENDS_OF_LINES, ROOT, needs_mounts

START = """
import logging, os, sys, time
from pathlib import Path
from plugin.errors import MpsError
from plugin.mps import shared_memory
from plugin.mps.mounts import BIND, mount, mounts
from plugin.mps.place import Place
logging.basicConfig(format="%(message)s", stream=sys.stdout)
pipes = Path(sys.argv[1])
place = Place(pipe_directory=pipes, mount_sources=None, log_directory=pipes, program="", multi_user=False)
shm = pipes / "shm"
def mounted():
    return [one.source for one in mounts() if one.point == str(shm)]
"""


def isolated(pipes: Path, program: str, *before: str) -> str:
    command = [*ISOLATED, *before, sys.executable, "-W", "error", "-c", START + program, str(pipes)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@needs_mounts
def test_servers_and_clients_have_a_tmpfs_of_their_own_at_dev_shm_and_it_goes_at_the_end(pipes: Path) -> None:
    said = isolated(
        pipes,
        """
shared_memory.provide(place)
shared_memory.provide(place)
print(mounted(), oct(shm.stat().st_mode))
print(next(line.split()[5] for line in open("/proc/self/mountinfo") if f" {shm} " in line))
Path("/dev/shm/cuda").write_text("from a server")
print((shm / "cuda").read_text())
in_use = (shm / "cuda").open()
shared_memory.withdraw(place)
in_use.close()
print(mounted(), list(shm.iterdir()), Path("/dev/shm/cuda").read_text())
shared_memory.withdraw(place)
""",
    )
    assert said.splitlines() == [
        "['gpu-share'] 0o41777",
        "rw,nosuid,nodev,noexec,relatime",
        "from a server",
        "[] [] from a server",
    ]


@needs_mounts
def test_what_an_administrator_mounted_there_is_used_and_left(pipes: Path) -> None:
    said = isolated(
        pipes,
        """
(pipes / "own").mkdir()
shm.mkdir()
mount(str(pipes / "own"), str(shm), flags=BIND)
before = mounted()
shared_memory.provide(place)
Path("/dev/shm/cuda").write_text("")
print(len(before), mounted() == before, os.listdir(pipes / "own"))
shared_memory.withdraw(place)
print(mounted() == before)
""",
    )
    assert said.splitlines() == ["1 True ['cuda']", "True"]


@needs_mounts
def test_what_a_container_makes_that_starts_while_it_is_asked_who_holds_shares_stays(pipes: Path) -> None:
    said = isolated(
        pipes,
        """
shared_memory.provide(place)
for name in ("of an ended one", "of a server"):
    (shm / name).write_text("")
in_use = (shm / "of a server").open()
time.sleep(1.1)
def asked(is_idle):
    (shm / "of one that starts").write_text("")
    return is_idle
def empty(is_idle):
    shared_memory.empty(place, is_idle=lambda: asked(is_idle), servers=lambda: [os.getpid()])
    print(sorted(os.listdir(shm)))
empty(False)
empty(True)
""",
    )
    assert said.splitlines() == [
        "['of a server', 'of an ended one', 'of one that starts']",
        "['of a server', 'of one that starts']",
    ]


@needs_mounts
def test_nothing_of_an_administrators_mount_is_removed_and_its_mode_stays(pipes: Path) -> None:
    said = isolated(
        pipes,
        """
(pipes / "own").mkdir(mode=0o700)
(pipes / "own" / "kept").write_text("")
shm.mkdir()
mount(str(pipes / "own"), str(shm), flags=BIND)
shared_memory.provide(place)
time.sleep(1.1)
shared_memory.open_to_all(place)
shared_memory.empty(place, is_idle=lambda: True, servers=list)
print(os.listdir(shm), oct(shm.stat().st_mode))
""",
    )
    assert said.strip() == "['kept'] 0o40700"


@needs_mounts
def test_a_link_that_was_planted_in_its_place_is_replaced_and_not_followed(pipes: Path) -> None:
    (pipes / "elsewhere").mkdir()
    (pipes / "shm").symlink_to("elsewhere")
    said = isolated(
        pipes,
        "shared_memory.provide(place); print(mounted(), [one for one in mounts() if one.point.endswith('elsewhere')])",
    )
    assert said.strip() == "['gpu-share'] []"


@needs_mounts
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to give a right up")
def test_without_the_right_to_mount_one_line_says_what_to_do(pipes: Path) -> None:
    said = isolated(
        pipes,
        "try: shared_memory.provide(place)\nexcept MpsError as error: print(error)",
        "setpriv",
        "--bounding-set=-sys_admin",
    )
    assert "cannot be mounted: Operation not permitted: run gpu-share mps as root in a privileged container" in said
    assert said.count("\n") == 1


@needs_mounts
def test_a_dev_shm_that_others_see_too_is_left_alone_and_the_log_says_so(pipes: Path) -> None:
    said = isolated(
        pipes,
        """
before = os.stat("/dev/shm").st_dev
shared_memory.provide(place)
print(mounted(), os.stat("/dev/shm").st_dev == before)
""",
        *("unshare", "--pid", "--fork", "--mount-proc"),  # the first process sees the same mounts
        *("sh", "-c", '"$0" "$@" && true'),
    )
    assert said.splitlines() == [
        "MPS servers and their clients have different /dev/shm: run gpu-share mps in a container of its own",
        "['gpu-share'] True",
    ]


def one(number: int, point: str, *, peers: str = "") -> Mount:
    return Mount(id=number, device="0:1", point=point, peers=peers, source="x")


OWN = (one(20, "/"), one(21, "/dev"), one(22, "/dev/shm"))
SHARED = one(23, "/dev/shm", peers="shared:7")
OF_ANOTHER_NAMESPACE = (one(1, "/"), one(2, "/dev"))


@pytest.mark.parametrize(
    ("own", "first", "pid", "alone"),
    [
        (OWN, OF_ANOTHER_NAMESPACE, 99, True),
        (OWN, OWN, 99, False),  # on the node itself, or the first process is of our container
        (OWN, OWN[:1], 99, False),  # it sees a part
        (OWN, None, 99, False),
        (OWN, OWN, 1, True),  # we are the first of our container
        ((*OWN, SHARED), (*OF_ANOTHER_NAMESPACE, one(3, "/dev/shm", peers="shared:7")), 99, False),
        ((*OWN, SHARED), (*OF_ANOTHER_NAMESPACE, one(3, "/dev/shm", peers="shared:8")), 99, True),
        ((*OWN, SHARED), OF_ANOTHER_NAMESPACE, 99, True),  # with what shows elsewhere on the node
        ((*OWN, SHARED), (), 1, False),
        ((), OF_ANOTHER_NAMESPACE, 99, False),
    ],
)
def test_dev_shm_is_mounted_over_only_where_nobody_else_sees_that(
    own: tuple[Mount, ...], first: tuple[Mount, ...] | None, pid: int, *, alone: bool
) -> None:
    assert shows_to_us_alone("/dev/shm", own, first, pid=pid) is alone


def test_mounts_are_read_with_blanks_in_their_names_and_optional_fields(tmp_path: Path) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(
        "36 35 98:0 /a /with\\040blank rw,noatime master:1 - ext4 /dev/root rw\n"
        "37 35 98:0 / / rw shared:7 propagate_from:2 - tmpfs gpu-share rw,size=1k\n"
    )
    first, second = mounts(listed)
    assert first == Mount(id=36, device="98:0", point="/with blank", peers="", source="/dev/root")
    assert second == Mount(id=37, device="98:0", point="/", peers="shared:7", source="gpu-share")
    assert mount_of("/with blank/below", (first, second)) == first
    assert mount_of("/with blanks", (first, second)) == second
    assert mount_of("/x", (first,)) is None


@pytest.mark.parametrize("end", ODD_ENDS_OF_LINES)
def test_mounts_are_read_whatever_a_tenant_called_what_was_mounted(tmp_path: Path, end: str) -> None:
    listed = tmp_path / "mountinfo"
    line = f"38 35 0:99 /empty/a{end}b /pods/a{end}-{end}b rw,relatime shared:9 - tmpfs tmpfs rw\n"
    listed.write_bytes(line.encode(errors="surrogateescape"))
    assert mounts(listed) == (
        Mount(id=38, device="0:99", point=f"/pods/a{end}-{end}b", peers="shared:9", source="tmpfs"),
    )
