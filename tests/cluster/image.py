"""
The project's image and one that stands for all frameworks, built once, in one archive under every name that pods use.

GPU_SHARE_CLUSTER_IMAGE names an archive that was built before; it is then neither built nor thrown away.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.image import debian

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "registry.example.com/gpu-share:0.1.0"  # that of docs/install.md
_BY_ITSELF = "docker.io/library/gpu-share:"
_WORKLOAD = "localhost/workload:test"
_NAME_IN_CONTAINERD = "io.containerd.image.name"


@contextmanager
def archive() -> Iterator[Path]:
    """
    Build both images into an OCI archive.

    Raises:
        debian.NoBuilderError: If this machine cannot build them.
    """
    if built_before := os.environ.get("GPU_SHARE_CLUSTER_IMAGE"):
        yield Path(built_before)
        return
    folder = Path(tempfile.mkdtemp(prefix="gpu-share-cluster-image-"))
    try:
        with debian.storage() as (_, environment):
            debian.make_image(environment)  # as the pages do: the name is what it gives by itself
            made = _pack(folder, environment)
        yield made
    finally:
        shutil.rmtree(folder)


def framework_images() -> list[str]:
    """Give the images of the example pods, by their full names."""
    files = sorted((ROOT / "policies" / "examples").glob("*.yaml"))
    found = {name for path in files for name in re.findall(r"^\s*-? *image: (\S+)$", path.read_text(), re.MULTILINE)}
    return sorted(_full(name) for name in found)


def _full(name: str) -> str:
    """Write an image's name as container runtimes do."""
    host, slash, _ = name.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def _pack(folder: Path, environment: Mapping[str, str]) -> Path:
    (by_itself,) = [name for name in debian.names(environment) if name.startswith(_BY_ITSELF)]
    build = ["buildah", "build", "--quiet", "--pull-never", "--tag", _WORKLOAD, f"--build-arg=BASE={by_itself}"]
    debian.run([*build, str(HERE / "workload")], environment)
    layout = folder / "layout"
    for name in (by_itself, _WORKLOAD):
        debian.run(["buildah", "push", "--quiet", name, f"oci:{layout}:{name}"], environment)
    index = json.loads((layout / "index.json").read_text())
    ours, workload = index["manifests"]
    index["manifests"] = [*_named(ours, [NAME, by_itself]), *_named(workload, framework_images())]
    (layout / "index.json").write_text(json.dumps(index))
    made = folder / "images.tar"
    with tarfile.open(made, "w") as tar:
        tar.add(layout, arcname=".")
    shutil.rmtree(layout)
    return made


def _named(manifest: Mapping[str, object], names: Sequence[str]) -> Iterator[dict[str, object]]:
    for name in names:
        yield {**manifest, "annotations": {_NAME_IN_CONTAINERD: name, "org.opencontainers.image.ref.name": name}}


def load(command: Sequence[str], image: Path) -> None:
    """Run a loader's *command* with the archive's path."""
    ran = subprocess.run([*command, str(image)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)} {image}\n{ran.stdout}{ran.stderr}"
