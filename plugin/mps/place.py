"""Where the MPS daemons of a node are, and how they are run."""

from dataclasses import dataclass
from pathlib import Path

MOUNT_SOURCES = "pipes"  # below the state directory, where no tenant is


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Their directories, and the program that they are."""

    pipe_directory: Path
    mount_sources: Path | None  # see `mount_sources`; None: containers get what is in the former by its names
    log_directory: Path  # not below the former: there tenants could put links in a log's place
    program: str  # nvidia-cuda-mps-control, by name or path
    multi_user: bool
