"""Installations in which namespaces are exempt that anybody may have yet to create."""

from console.objects import Metadata
from tests.console.installations import Wrong, admission_policies, installation
from tests.console.wrong.of_admission import LOCKDOWN
from tests.manifests.admission import BASE

LOCKED = admission_policies([*BASE, *LOCKDOWN])

WRONG: list[Wrong] = [
    (
        "exempt-namespaces-exist",
        "warning",
        "nvidia-gpu-operator does not exist, and is exempt from gpu-share-lockdown, gpu-share-lockdown-claims",
        lambda: installation(**LOCKED, namespaces=dict.fromkeys(("gpu-operator", "kube-system"), Metadata())),
    ),
    (
        "exempt-namespaces-exist",
        "warning",
        "kube-system does not exist, and is exempt from gpu-share, gpu-share-changes",
        lambda: installation(namespaces={"gpu-share": Metadata()}),
    ),
]
