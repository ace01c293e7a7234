"""What containers get of the pipe directory, mounted for real, while root in one changes the names in it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.isolated import ISOLATED, ROOT, needs_mounts
from tests.plugin.mps.supervised import is_now, running

pytestmark = needs_mounts

DIFFERENT = "MPS servers and their clients have different /dev/shm: run gpu-share mps in a container of its own"
# The first process of the namespace is the node's: it sees what is mounted. A tenant is one in a namespace beside.
AS_A_NODE = (*ISOLATED, "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", '"$0" "$@" && true')
START = f"""
import logging, os, subprocess, sys
from pathlib import Path
from plugin.errors import MpsError
from plugin.mps import mount_sources, shared_memory
from plugin.mps.mount_sources import offer
from plugin.mps.mounts import BIND, mount, mounts, unmount
from plugin.mps.pipe_directories import prepare
from plugin.mps.place import Place
logging.basicConfig(format="%(message)s", stream=sys.stdout)
root, UUID = Path(sys.argv[1]), "{UUID}"
pipes, state, secret = root / "p", root / "state", root / "secret"
for one in (pipes, state, secret):
    one.mkdir()
(secret / "of the node").write_text("")
given = mount_sources.mount_sources(state)
place = Place(pipe_directory=pipes, mount_sources=given, log_directory=root, program="", multi_user=False)
def tenant(script):
    "Do something as root in a container that sees the whole directory, and none of what the node has mounted below."
    apart = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"]
    below = f"umount {{pipes}}/* 2>/dev/null || true; cd {{pipes}}; secret={{secret}}; {{script}}"
    subprocess.run([*apart, below], check=True)
def there(name):
    return sorted(os.listdir(given / name))
"""


def on_a_node(root: Path, program: str) -> list[str]:
    command = [*AS_A_NODE, sys.executable, "-W", "error", "-c", START + program, str(root)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_link_in_place_of_a_gpus_directory_leads_no_container_anywhere(root: Path) -> None:
    said = on_a_node(
        root,
        """
(prepare(pipes, UUID) / "control").touch()
print(offer(given, pipes, UUID), there(UUID))
tenant(f"mv {UUID} away; ln -s $secret {UUID}")
print(os.listdir(pipes / UUID), there(UUID))
print(offer(given, pipes, UUID), there(UUID), os.listdir(secret))
(pipes / UUID / "control").touch()
print(there(UUID), sum(one.point == str(given / UUID) for one in mounts()))
""",
    )
    assert said == [" ['control']", "['of the node'] ['control']", " [] ['of the node']", "['control'] 1"]


def test_what_lies_below_a_mount_is_nothing_that_a_container_could_write_to(root: Path) -> None:
    said = on_a_node(
        root,
        """
prepare(pipes, UUID)
print(offer(given, pipes, UUID), offer(given, pipes, "other"))
unmount(str(given / UUID))
try:
    (given / UUID / "x").touch()
except OSError as error:
    print(error.strerror)
print(offer(given, pipes, UUID))
(given / UUID / "x").touch()
""",
    )
    assert said == [" ", "Read-only file system", ""]


def test_shared_memory_that_a_tenant_takes_out_of_the_tree_stays_what_containers_get(root: Path) -> None:
    said = on_a_node(
        root,
        """
shared_memory.provide(place)
(pipes / "shm" / "cuda").touch()
tenant("rmdir shm; ln -s $secret shm")
print(os.listdir(pipes / "shm"), there("shm"), shared_memory.is_offered(place))
os.chmod(given / "shm", 0o700)
shared_memory.open_to_all(place)
print(oct((given / "shm").stat().st_mode))
""",
    )
    assert said == [
        DIFFERENT,
        "['of the node'] ['cuda'] True",
        "the shared memory of MPS was closed to some users: opened again",
        "0o41777",
    ]


def test_shared_memory_that_is_unmounted_by_hand_is_mounted_again(root: Path) -> None:
    said = on_a_node(
        root,
        """
shared_memory.provide(place)
(given / "shm" / "cuda").touch()
unmount(str(given / "shm"))
print(shared_memory.is_offered(place), there("shm"))
shared_memory.provide(place)
print(shared_memory.is_offered(place), there("shm"))
""",
    )
    assert said[1:3] == [
        "False []",
        DIFFERENT,
    ]
    assert said[3:] == ["True ['cuda']"]


def test_what_was_mounted_in_the_pipe_directory_before_is_what_containers_get(root: Path) -> None:
    said = on_a_node(
        root,
        """
(pipes / "shm").mkdir()
mount("gpu-share", str(pipes / "shm"), kind="tmpfs")  # by an earlier version
(pipes / "shm" / "a").touch()
shared_memory.provide(place)
print(there("shm"))
mount(str(secret), str(pipes / "shm"), flags=BIND)  # by an administrator
shared_memory.provide(place)
print(there("shm"))
shared_memory.empty(place, is_idle=lambda: True, servers=list)
print(there("shm"))
""",
    )
    assert [line for line in said if line.startswith("[")] == ["['a']", "['of the node']", "['of the node']"]


def test_a_directory_that_is_not_the_one_mounted_there_is_not_offered_for_it(root: Path) -> None:
    said = on_a_node(
        root,
        """
print(offer(given, pipes, "shm", device="0:1"))
print(list(given.iterdir()) if given.exists() else "none")
""",
    )
    assert said == [f"{root}/p/shm: somebody put another directory in its place", "none"]


def test_nothing_of_it_is_left_at_the_end(root: Path) -> None:
    said = on_a_node(
        root,
        """
prepare(pipes, UUID)
shared_memory.provide(place)
print(offer(given, pipes, UUID), sorted(os.listdir(given)))
tenant("mv shm x")
shared_memory.withdraw(place)
mount_sources.withdraw_all(given)
print([one for one in mounts() if str(root) in one.point], given.exists())
""",
    )
    assert said[1:] == [f" ['{UUID}', 'shm']", "[] False"]


def test_where_the_node_would_not_see_it_containers_get_the_pipe_directory_by_its_names_and_the_log_says_so(
    root: Path,
) -> None:
    program = START + "mount_sources.warn_without(state); print(given, offer(given, pipes, UUID), os.listdir(state))"
    command = [*ISOLATED, sys.executable, "-c", program, str(root)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    warning, result = said.splitlines()
    assert warning.endswith("what other containers get: mount --state-dir with mountPropagation: Bidirectional")
    assert result == "None  []"


def test_a_gpu_whose_pipes_cannot_be_mounted_for_containers_takes_none_and_says_what_else_it_finds(
    gpu: Gpu, context: SupervisorContext, root: Path, pipes: Path
) -> None:
    (root / "file").touch()
    place = replace(context.place, mount_sources=root / "file")
    supervisor = DaemonSupervisor(gpu, replace(context, place=place))
    with running(supervisor):
        at = root / "file" / UUID
        is_now(supervisor, "failed", f"{pipes / UUID}: cannot be mounted at {at} for containers: Not a directory")
        (pipes / UUID / "control").unlink()
        is_now(supervisor, "failed", "somebody removed the socket of the daemon")
