"""gpu-share as docs/install.md installs it, from a copy of the manifests with the image's name filled in."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plugin.dra.slices import EARLIER_TAINT
from plugin.simulated.gpus import simulated_node
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.image import NAME, ROOT
from tests.cluster.pages import command, commands
from tests.cluster.pods import container, pod
from tests.cluster.webhooks import decisions

INSTALL = "3. Install"  # the section of docs/install.md
ON_KIND = "kind, without GPUs"
SIMULATED = "manifests/overlays/simulated"
VGPU = "gpu-share.dev/vgpu"
AWS_VGPU = "k8s.amazonaws.com/vgpu"
VGPUS = "20"  # of two simulated GPUs
SHOWN = 12  # of them at least, whoever holds what: the scheduler could send more than fits on one GPU otherwise
# Overlays for clusters with GPUs, on simulated ones: what a page says of them can be seen in containers.
ENVVAR = "manifests/overlays/envvar-on-simulated-gpus"
AWS = "manifests/overlays/aws-resource-on-simulated-gpus"
DRA = "manifests/overlays/dra-simulated"
DRA_DEVICES = 54  # of two simulated GPUs
# Half a node has moved over: its first GPU is the device plugin's, its second one DRA's.
MOVING = "manifests/overlays/moving-on-simulated-gpus"
_MOVED = [{"offer": "mps", "indexes": [1], "allocation": "dra"}]
# One GPU in MIG mode with two instances.
MIG = "manifests/overlays/mig-on-simulated-gpus"
MIG_DRA = "manifests/overlays/mig-on-simulated-gpus-by-dra"
MIG_GPUS = "1xH100:2x3g.40gb"
LOCKED = "manifests/overlays/locked-down-on-simulated-gpus"
_KUSTOMIZATIONS = {
    LOCKED: {"resources": ["../simulated"], "components": ["../../components/lockdown"]},
    ENVVAR: {"resources": ["../envvar"], "components": ["../simulated/gpus", "../../common"]},
    AWS: {"resources": ["../aws-resource"], "components": ["../simulated/gpus", "../../common"]},
    **{
        made: {
            "resources": [of],
            "patches": [{"target": {"kind": "DaemonSet", "name": "gpu-share-plugin"}, "path": "plugin.yaml"}],
        }
        for made, of in ((MIG, "../simulated"), (MIG_DRA, "../dra-simulated"))
    },
    MOVING: {
        "resources": ["../../base", "../../certs"],
        "components": ["../simulated/gpus", "../dra/driver", "../../common"],
        "configMapGenerator": [
            {"name": "gpu-share-cluster", "namespace": "gpu-share", "behavior": "merge", "files": ["_cluster.yaml"]}
        ],
    },
}


@dataclass
class Installation:
    """What is installed, and the copy of the manifests that it is installed from."""

    cluster: Cluster
    tree: Path
    overlay: str = ""

    def write_tree(self) -> None:
        """Copy the manifests, and say in them where the image is, as the page does."""
        shutil.copytree(ROOT / "manifests", self.tree / "manifests")
        shutil.copytree(ROOT / "policies" / "files", self.tree / "policies" / "files")
        common = self.tree / "manifests" / "common" / "kustomization.yaml"
        name, _, tag = NAME.rpartition(":")
        content = yaml.safe_load(common.read_text())
        content["images"] = [{"name": "gpu-share", "newName": name, "newTag": tag}]
        common.write_text(yaml.safe_dump(content))
        for overlay, kustomization in _KUSTOMIZATIONS.items():
            (self.tree / overlay).mkdir()
            (self.tree / overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        cluster = yaml.safe_load((ROOT / "policies" / "files" / "_cluster.yaml").read_text())
        for overlay in (MIG, MIG_DRA):
            (self.tree / overlay / "plugin.yaml").write_text(yaml.safe_dump(_mig_patch()))
        (self.tree / MOVING / "_cluster.yaml").write_text(yaml.safe_dump({**cluster, "nodes": _MOVED}))

    def use(self, overlay: str, resource: str = VGPU) -> None:
        """Have *overlay* installed and all of it ready; nothing happens if it is."""
        if self.overlay != overlay:
            self.apply(overlay)
            # The plugin starts anew by itself where it must, within a minute: until then pods may still be its own.
            self.run("kubectl -n gpu-share rollout restart daemonset/gpu-share-plugin")
            self.wait_until_ready(resource)

    def use_dra(self, overlay: str, *, devices: int = DRA_DEVICES) -> None:
        """Have an overlay with DRA installed, and its devices published."""
        if self.overlay != overlay:
            self.apply(overlay)
        self.run("kubectl -n gpu-share rollout status deployment/gpu-share-webhook")
        self.run("kubectl -n gpu-share rollout status daemonset/gpu-share-plugin")
        self.hurry("webhook")
        eventually(lambda: len(self.devices()) == devices, what=f"{devices} devices are published")

    def leave_dra(self) -> None:
        """Remove what the other overlays do not have."""
        files = ("device-classes", "rbac", "admission-policy-claims", "admission-policy-slices")
        names = " ".join(f"-f manifests/overlays/dra/driver/{name}.yaml" for name in files)
        self.run(f"kubectl delete --ignore-not-found {names}")

    def devices(self) -> list[dict[str, Any]]:
        """Give the devices of all nodes that pods can get: those of an earlier number stay for a while."""
        listed = self.cluster.api.get("/apis/resource.k8s.io/v1/resourceslices")["items"]
        devices = (one for part in listed for one in part["spec"].get("devices", ()))
        return [one for one in devices if all(taint["key"] != EARLIER_TAINT for taint in one.get("taints", ()))]

    def apply(self, overlay: str) -> str:
        """Do what the page says for *overlay*, a directory; gives what kubectl printed."""
        section = ON_KIND if overlay == SIMULATED else INSTALL
        applied = self.run(command("install.md", section, "kubectl apply -k").replace(_page_overlay(section), overlay))
        self.run(command("install.md", ON_KIND, "kubectl label nodes"))
        self.overlay = overlay
        return applied

    def wait_until_ready(self, resource: str = VGPU, *, seconds: float = 60) -> None:
        """Wait as the page does, and until every node advertises its vGPUs."""
        for line in commands("install.md", INSTALL):
            if "rollout status" in line:
                self.run(line)
        for component in ("webhook", "plugin"):
            self.hurry(component)
        limited = pod(None, container(resources={"limits": {resource: "2"}}))
        eventually(
            lambda: decisions(self.cluster, limited, "default") == {True},
            seconds=seconds,
            what=f"each webhook grants {resource}",
        )
        eventually(
            lambda: self._is_registered(resource), seconds=seconds, what=f"the plugins have registered {resource}"
        )
        eventually(
            lambda: all(int(self.allocatable(node).get(resource, 0)) >= SHOWN for node in self.nodes()),
            seconds=seconds,
            what=f"{SHOWN} {resource} on every node",
        )

    def _is_registered(self, resource: str) -> bool:
        """Whether each plugin has told its kubelet: a node's status may still be that of the plugin before."""
        names = [one["metadata"]["name"] for one in self.pods("plugin")]
        logs = [self.cluster.attempt(f"kubectl -n gpu-share logs {name}").stdout for name in names]
        return bool(logs) and all(f'"{resource}"' in log for log in logs)

    def run(self, line: str) -> str:
        """Run a command where the reader of the page would be."""
        return self.cluster.run(line, cwd=self.tree)

    def nodes(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.cluster.api.get("/api/v1/nodes")["items"]]

    def allocatable(self, node: str) -> dict[str, str]:
        """Give what of every resource *node* has for pods."""
        found: dict[str, str] = self.cluster.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]
        return found

    def capacity(self, node: str) -> dict[str, str]:
        """Give what of every resource *node* has, whether pods may have it or not."""
        found: dict[str, str] = self.cluster.api.get(f"/api/v1/nodes/{node}")["status"]["capacity"]
        return found

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Give the pods of one part that are not about to end."""
        selector = f"app.kubernetes.io/component={component}"
        listed = self.cluster.api.get("/api/v1/namespaces/gpu-share/pods", labelSelector=selector)["items"]
        return [one for one in listed if "deletionTimestamp" not in one["metadata"]]

    def write_policies(self, **files: str | None) -> None:
        """Change policy files, as docs/operations.md says; None removes one."""
        folder = self.tree / "policies" / "files"
        for name, text in files.items():
            path = folder / f"{name}.yaml"
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        listing = folder / "Kustomization"
        content = yaml.safe_load(listing.read_text())
        (policies,) = (one for one in content["configMapGenerator"] if one["name"] == "gpu-share-policies")
        policies["files"] = sorted(path.name for path in folder.glob("*.yaml") if path.name != "_cluster.yaml")
        listing.write_text(yaml.safe_dump(content))

    def change_policies(self, **files: str | None) -> None:
        """Change policy files in the cluster, without waiting the minute that kubelets take for a ConfigMap."""
        self.write_policies(**files)
        self.run("kubectl apply -k policies/files --server-side --force-conflicts")
        self.hurry("webhook")

    def hurry(self, component: str) -> None:
        """Have the kubelets look at the volumes of a part's pods: they do when a pod changes. Some may end."""
        selector = f"app.kubernetes.io/component={component}"
        self.cluster.attempt(
            f"kubectl -n gpu-share annotate pod -l {selector} --overwrite gpu-share.test/at={time.time()}"
        )

    def uninstall(self) -> None:
        """Do what docs/operations.md says."""
        for line in commands("operations.md", "Uninstall"):
            self.run(line.replace("manifests", self.overlay) if "delete -k" in line else line)
        self.overlay = ""


def _mig_patch() -> list[dict[str, Any]]:
    """Have the plugin simulate the GPU in MIG mode, and the directories of its instances be there."""
    made = "".join(f"install -d -m 755 /tmp/nvidia-mps/{one.uuid}\n" for one in simulated_node(MIG_GPUS).instances)
    container = "/spec/template/spec/containers/0"
    (written, *_) = yaml.safe_load((ROOT / SIMULATED / "gpus" / "plugin.yaml").read_text())
    position = [one["name"] for one in written["value"]].index("GPU_SHARE_SIMULATE")
    return [
        {"op": "replace", "path": f"{container}/env/{position}/value", "value": MIG_GPUS},
        {"op": "add", "path": f"{container}/env/-", "value": {"name": "GPU_SHARE_WAIT_FOR_GPUS", "value": "true"}},
        {
            "op": "replace",
            "path": "/spec/template/spec/initContainers/0/args/0",
            "value": f"{made}install -d -m 1777 /tmp/nvidia-mps/shm\n",
        },
    ]


def _page_overlay(section: str) -> str:
    """Give the directory that the page's own command of *section* applies."""
    return command("install.md", section, "kubectl apply -k").split()[3]


def objects_of_ours(cluster: Cluster, kinds: Sequence[str]) -> list[str]:
    """List what carries our label, and our namespaces."""
    listed = json.loads(cluster.run(f"kubectl get {','.join(kinds)} -A -o json -l app.kubernetes.io/part-of=gpu-share"))
    return [f"{one['kind']}/{one['metadata']['name']}" for one in listed["items"]]
