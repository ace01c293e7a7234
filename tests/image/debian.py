"""Build the image on a base that needs no registry: a minimal Debian, created here and deleted afterwards."""

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
_BASE = "localhost/debian:test"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TOOLS = ("buildah", "mmdebstrap", "setpriv", "unshare")
_DOWNLOAD_SECONDS = 300
_MOUNTS = ("unshare", "--mount", "true")


class NoBuilderError(Exception):
    """No image can be built on this machine, for a reason outside the project."""


@contextmanager
def built_on_debian() -> Iterator[Image]:
    """
    Build the image in its own storage, which is deleted at the end: layers without overlayfs are whole copies.

    Raises:
        NoBuilderError: If there is no builder, or no Debian to build on.
    """
    _need_tools()
    directory = Path(tempfile.mkdtemp(prefix="gpu-share-image-"))
    directory.chmod(0o755)  # apt downloads as its own user
    try:
        environment = os.environ | _private_storage(directory)
        _make_base(directory, environment)
        _make_image(environment)
        yield _open_image(environment)
    finally:
        shutil.rmtree(directory)


def _need_tools() -> None:
    if os.geteuid() != 0:
        raise NoBuilderError("building needs root, for chroot and mount: run as root")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoBuilderError(f"there is no {', no '.join(missing)}: apt-get install buildah mmdebstrap util-linux")
    if subprocess.run(_MOUNTS, capture_output=True, check=False).returncode:
        raise NoBuilderError("mounting is not permitted here: run outside the container or sandbox")


def _private_storage(directory: Path) -> dict[str, str]:
    settings = directory / "storage.conf"
    settings.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/layers"\nrunroot = "{directory}/run"\n')
    return {
        "CONTAINERS_STORAGE_CONF": str(settings),
        "BUILDAH_ISOLATION": "chroot",
        "TMPDIR": str(directory),
    }


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
    _run(["buildah", "build", "--quiet", "--tag", _BASE, str(context)], environment)
    shutil.rmtree(context)


def _make_image(environment: Mapping[str, str]) -> None:
    options = ["--quiet", "--pull-never"]
    if _CERTIFICATES.exists():  # a proxy before the package index may have a CA that only this machine trusts
        options.append(f"--volume={_CERTIFICATES}:{_CERTIFICATES}:ro")
    if "PIP_INDEX_URL" in environment:
        options.append("--build-arg=PIP_INDEX_URL")
    chosen = {"BUILDER": "buildah", "BASE": _BASE, "IMAGE": NAME, "OPTIONS": " ".join(options)}
    _run(["make", "--no-print-directory", "image"], {**environment, **chosen})


def _open_image(environment: Mapping[str, str]) -> Image:
    described = json.loads(_run(["buildah", "inspect", "--type=image", NAME], environment))
    container = _run(["buildah", "from", "--pull-never", NAME], environment)
    return Image(root=Path(_run(["buildah", "mount", container], environment)), config=described["OCIv1"]["config"])


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout.strip()
