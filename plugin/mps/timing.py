"""How long `gpu-share mps` waits for what, and how often it looks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds."""

    look: float = 3.0  # between two looks at a daemon
    answer: float = 3.0  # for one command
    patience: float = 60.0  # likewise, before a daemon is ended that containers may have work by
    settle: float = 0.5  # for the server of another user, in which there is none; 0.1 was seen
    start: float = 25.0  # for a daemon, until it listens, or for a server; with its end less than `end`
    quit: float = 10.0  # for a daemon that was told to, until it is gone with its servers
    kill: float = 3.0  # for a process, after each of SIGTERM and SIGKILL
    end: float = 45.0  # for all of them, at the end; a pod is given 60
    limits: float = 60.0  # between two looks at limits that tenants may have changed
    ceilings: float = 3.0  # between two looks at policies and tenants
    gpus: float = 30.0  # between two looks at the GPUs and their compute modes
    silence: float = 0.2  # between two looks whom daemons wait for
    publish: float = 1.0  # between two looks at what is to be published
    heartbeat: float = 5.0  # between two writes, when nothing changes
    use: float = 10.0  # between two measurements of what containers take


TIMING = Timing()
