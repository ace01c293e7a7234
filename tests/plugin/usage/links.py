"""Links to the logs of containers, as the kubelet makes them."""

from pathlib import Path

UID = "3f1c7f6e-1111-4222-8333-944444444444"
OTHER_UID = "00000000-1111-4222-8333-944444444444"


def linked(logs: Path, pod: str, container: str, digits: str, *, uid: str) -> None:
    """Make a link as the kubelet does, which cuts its name."""
    name = f"{pod}_team-a_{container}-{digits * 64}"[: 255 - len(".log")]
    (logs / f"{name}.log").symlink_to(f"/var/log/pods/team-a_{pod}_{uid}/{container}/0.log")
