"""Processes and their threads as /proc shows them, in a directory."""

from pathlib import Path

RUNS, ENDED = 0x400040, 0x40004C  # flags, as Linux has them of a thread that runs and of one that has ended


def has_thread(proc: Path, pid: int, thread: int, cgroups: str, flags: int) -> None:
    """Let a process have a thread; that of its own number is the main one."""
    process = proc / str(pid)
    for task in (process / "task" / str(thread), *([process] if thread == pid else [])):
        task.mkdir(parents=True, exist_ok=True)
        (task / "cgroup").write_text(cgroups)
        (task / "stat").write_text(f"{thread} (a) Z 0 0 (x) S 1 {pid} {pid} 0 -1 {flags} 0 0 0 0 0 0\n")
