"""Installations in which a check of a node fails, or has nothing to judge."""

from functools import partial
from typing import Any

import msgspec

from console.doctor.installation import Installation
from console.dra_objects import Cel, DeviceSelector
from console.seen import Unseen
from policies.node_state import Ages, Gpu, MpsDaemon, NotRegistered
from tests.console.installations import Wrong, dra, installation, nodes, policies, seen, with_node
from tests.console.objects import PROGRAM, failed_gpu, gpu, state

NOT_READY = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no network"}


def late_daemon() -> Gpu:
    return gpu(mps_daemon=MpsDaemon(state="starting", since="2026-01-01T00:00:00Z", why="it has not answered yet"))


def frozen(**changes: Any) -> Installation:
    """An installation whose node has slices, and may not change them any more."""
    node = state(gpu(allocation="dra"), on="gpu-0", slices_not_published="forbidden")
    return installation(seen(**nodes(node)), **{**dra(), **changes})


def frozen_unseen() -> Installation:
    """The same, seen by somebody who may not list slices."""
    return frozen(slices=None, unseen={"slices": Unseen(what="ResourceSlices", why="forbidden")})


def left() -> Installation:
    """An installation whose node has left DRA, and may not withdraw its slices."""
    return with_node(gpu(), slices_not_published="forbidden")


def selecting(*selectors: str, program: str = PROGRAM) -> Installation:
    """An installation by DRA, whose node runs *program*, and whose first DeviceClass selects devices so."""
    made = dra()
    first, *others = made["classes"]
    changed = tuple(DeviceSelector(cel=Cel(expression=one)) for one in selectors)
    first = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, selectors=changed))
    node = msgspec.structs.replace(state(gpu(), on="gpu-0"), program=program)
    return installation(seen(**nodes(node)), **{**made, "classes": (first, *others)})


WRONG: list[Wrong] = [
    (
        "nodes-ready",
        "failure",
        "gpu-0 is not Ready: KubeletNotReady: no network; no new pod comes to it",
        lambda: installation(seen(**nodes(state(gpu(), on="gpu-0"), conditions=[NOT_READY]))),
    ),
    ("nodes-speak", "failure", "no part of gpu-share runs", lambda: installation(seen(**nodes(None)))),
    ("nodes-speak", "failure", "says nothing any more", lambda: with_node(gpu(), ages=Ages(health=99))),
    ("gpus-healthy", "failure", "XID 79; recovers by a reset", lambda: with_node(gpu(), failed_gpu())),
    (
        "gpus-healthy",
        "failure",
        "GPU 1 MIG-1: the driver reported XID 79",
        lambda: with_node(gpu(), msgspec.structs.replace(failed_gpu(), uuid="MIG-1")),
    ),
    ("mps-daemons", "failure", "it has not answered yet", lambda: with_node(late_daemon())),
    ("mps-daemons", "not-applicable", "no node tells of an MPS daemon", lambda: with_node(gpu(mps_daemon=None))),
    (
        "registered",
        "warning",
        "advertises 20 gpu-share.dev/vgpu, and its plugin has 10",
        lambda: with_node(gpu()),
    ),
    (
        "registered",
        "failure",
        "gpu-0: its kubelet does not know gpu-share.dev/vgpu, of which no pod gets any: it cannot dial",
        lambda: with_node(gpu(), not_registered=(NotRegistered(resource="gpu-share.dev/vgpu", why="it cannot dial"),)),
    ),
    ("gpus-shared", "warning", "GPU 3 is in MIG mode", lambda: with_node(gpu(), skipped=("GPU 3 is in MIG mode",))),
    ("tenants-known", "warning", "no socket", lambda: with_node(gpu(), tenants_unknown="no socket")),
    (
        "device-classes",
        "failure",
        "there is no DeviceClass share-100m.gpu-share.dev: pods that are granted gpu-share.dev/share-100m stay Pending",
        lambda: installation(**{**dra(), "classes": ()}),
    ),
    (
        "device-classes",
        "failure",
        "share-50m.gpu-share.dev",
        lambda: installation(**{**dra(), **policies("vgpusPerGpu: 20\n", x="allocation: dra\n")}),
    ),
    (
        "device-classes",
        "failure",
        "vgpusPerGpu 40 needs 158 devices",
        lambda: installation(**{**dra(), **policies("vgpusPerGpu: 40\n", x="allocation: dra\n")}),
    ),
    *(
        (
            "device-classes",
            "failure",
            "the DeviceClass share-100m.gpu-share.dev does not select its devices as this version of gpu-share has it",
            partial(selecting, *selectors),
        )
        for selectors in ((), ('device.driver == "gpu.nvidia.com"',))
    ),
    (
        "slices",
        "failure",
        "gpu-0 has no ResourceSlice of gpu-share.dev; its plugin says: cdi; allocation by DRA: no right",
        lambda: with_node(gpu(allocation="dra"), handover="cdi; allocation by DRA: no right"),
    ),
    *(
        ("slices", "failure", "gpu-0 does not publish its ResourceSlices", made)
        for made in (frozen, frozen_unseen, left)
    ),
    ("device-classes", "unknown", "gpu-0 runs gpu-share 9.0.0, and this is", lambda: selecting(program="9.0.0")),
    ("device-classes", "not-applicable", "nothing is allocated by DRA", installation),
    ("slices", "not-applicable", "no node has GPUs that are allocated by DRA", installation),
]
