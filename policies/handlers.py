"""What the kubelet runs in a container beside its own command."""

from collections.abc import Iterator

from policies.pod import Container


def commands_beside(container: Container) -> Iterator[list[str]]:
    """Yield the commands that the kubelet runs in a container beside its own: those of its hooks and probes."""
    hooks = container.lifecycle
    handlers = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    for one in (*handlers, hooks.post_start, hooks.pre_stop) if hooks else handlers:
        if one is not None and one.exec is not None and one.exec.command:
            yield one.exec.command
