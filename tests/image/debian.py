"""
Build the image on a base that needs no registry: a minimal Debian, created here and deleted afterwards.

GPU_SHARE_IMAGE_STORAGE names a directory that is kept: what is built again in it takes base and layers from there.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.image.container import Image

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"  # Python 3.11, the oldest supported
NAME = "localhost/gpu-share:test"
BASE = "localhost/debian:test"
_KEPT = "GPU_SHARE_IMAGE_STORAGE"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TOOLS = ("buildah", "mmdebstrap", "setpriv", "unshare")
_CLOSE = ("buildah", "rm", "--all")  # and what is mounted
_DOWNLOAD_SECONDS = 300
_TRIAL_LAYERS = "lowerdir=lower,upperdir=upper,workdir=work"
_APART = ("unshare", "--mount")  # what is mounted there is seen nowhere else


class NoBuilderError(Exception):
    """No image can be built on this machine, for a reason outside the project."""


@contextmanager
def built_on_debian() -> Iterator[Image]:
    """
    Build the image, and open it.

    Raises:
        NoBuilderError: If there is no builder, or no Debian to build on.
    """
    with storage() as (_, environment):
        make_image(environment, IMAGE=NAME)
        yield _open_image(environment)


@contextmanager
def storage() -> Iterator[tuple[Path, dict[str, str]]]:
    """
    Give a directory with a storage of images that has the base, and the environment in which a builder uses it.

    Raises:
        NoBuilderError: If there is no builder, or no Debian to build on.
    """
    _need_tools()
    kept = os.environ.get(_KEPT)
    directory = Path(kept) if kept else Path(tempfile.mkdtemp(prefix="gpu-share-image-"))
    directory.chmod(0o755)  # apt downloads as its own user
    environment = os.environ | _private_storage(directory)
    try:
        if BASE not in names(environment):
            _make_base(directory, environment)
        yield directory, environment
    finally:
        subprocess.run(_CLOSE, env=environment, capture_output=True, check=False)
        if not kept:
            shutil.rmtree(directory)


def _need_tools() -> None:
    if os.geteuid() != 0:
        raise NoBuilderError("building needs root, for chroot and mount: run as root")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoBuilderError(f"there is no {', no '.join(missing)}: apt-get install buildah mmdebstrap util-linux")
    if subprocess.run([*_APART, "true"], capture_output=True, check=False).returncode:
        raise NoBuilderError("mounting is not permitted here: run outside the container or sandbox")


def _private_storage(directory: Path) -> dict[str, str]:
    settings = directory / "storage.conf"
    driver = "overlay" if _can_overlay(directory) else "vfs"
    settings.write_text(
        f'[storage]\ndriver = "{driver}"\ngraphroot = "{directory}/layers"\nrunroot = "{directory}/run"\n'
    )
    return {
        "CONTAINERS_STORAGE_CONF": str(settings),
        "BUILDAH_ISOLATION": "chroot",
        "TMPDIR": str(directory),
    }


def _can_overlay(directory: Path) -> bool:
    """Whether layers can lie over each other here: else each of them is a whole copy."""
    with tempfile.TemporaryDirectory(dir=directory) as trial:
        mount = f"cd {trial} && mkdir lower upper work over && mount -t overlay overlay -o {_TRIAL_LAYERS} over"
        tried = subprocess.run([*_APART, "sh", "-c", mount], capture_output=True, check=False)
    return tried.returncode == 0


def _make_base(directory: Path, environment: Mapping[str, str]) -> None:
    context = directory / "base"
    context.mkdir()
    # No documentation, as in slim images. The result is deleted within minutes, so dpkg need not sync to disk.
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-pip", *left_out]
    command += ["--dpkgopt=force-unsafe-io", SUITE, str(context / "debian.tar")]
    try:
        made = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoBuilderError(f"mmdebstrap could not download Debian within {_DOWNLOAD_SECONDS} s") from None
    if made.returncode:
        errors = [line for line in made.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
        raise NoBuilderError(f"mmdebstrap failed: {(errors or ['no reason given'])[0]}")
    (context / "Containerfile").write_text("FROM scratch\nADD debian.tar /\n")
    run(["buildah", "build", "--quiet", "--tag", BASE, str(context)], environment)
    shutil.rmtree(context)


def names(environment: Mapping[str, str]) -> list[str]:
    """Give the names of all stored images."""
    stored = json.loads(run(["buildah", "images", "--json"], environment))
    return [name for one in stored for name in one.get("names") or ()]


def make_image(environment: Mapping[str, str], **variables: str) -> None:
    """Run `make image` on the Debian of here, with more *variables* of manifests/image/build."""
    options = ["--quiet", "--pull-never", "--layers"]
    if _CERTIFICATES.exists():  # a proxy before the package index may have a CA that only this machine trusts
        options.append(f"--volume={_CERTIFICATES}:{_CERTIFICATES}:ro")
    if "PIP_INDEX_URL" in environment:
        options.append("--build-arg=PIP_INDEX_URL")
    chosen = {"BUILDER": "buildah", "BASE": BASE, "OPTIONS": " ".join(options), **variables}
    run(["make", "--no-print-directory", "image"], {**environment, **chosen})


def _open_image(environment: Mapping[str, str]) -> Image:
    described = json.loads(run(["buildah", "inspect", "--type=image", NAME], environment))
    container = run(["buildah", "from", "--pull-never", NAME], environment)
    return Image(root=Path(run(["buildah", "mount", container], environment)), config=described["OCIv1"]["config"])


def run(command: list[str], environment: Mapping[str, str]) -> str:
    """Run *command* at the project's root, and give what it printed."""
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout.strip()
