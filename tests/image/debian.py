"""The image on a base that needs no registry: a minimal Debian, made here and thrown away with all that was built."""

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
    """No image can be built on this machine, for a reason that lies outside the project."""


@contextmanager
def built_on_debian() -> Iterator[Image]:
    """
    Build the image in a storage of its own, which goes at the end: layers without overlayfs are whole copies.

    Raises:
        NoBuilderError: If there is no builder, or no Debian to build on.
    """
    _need_tools()
    folder = Path(tempfile.mkdtemp(prefix="gpu-share-image-"))
    folder.chmod(0o755)  # apt downloads as a user of its own
    try:
        environment = os.environ | _private_storage(folder)
        _make_base(folder, environment)
        _make_image(environment)
        yield _open_image(environment)
    finally:
        shutil.rmtree(folder)


def _need_tools() -> None:
    if os.geteuid() != 0:
        raise NoBuilderError("it takes root, for chroots and mounts")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoBuilderError(f"there is no {', no '.join(missing)}: apt-get install buildah mmdebstrap util-linux")
    if subprocess.run(_MOUNTS, capture_output=True, check=False).returncode:
        raise NoBuilderError("this sandbox allows no mounts")


def _private_storage(folder: Path) -> dict[str, str]:
    settings = folder / "storage.conf"
    settings.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/layers"\nrunroot = "{folder}/run"\n')
    return {
        "CONTAINERS_STORAGE_CONF": str(settings),
        "BUILDAH_ISOLATION": "chroot",
        "TMPDIR": str(folder),
    }


def _make_base(folder: Path, environment: Mapping[str, str]) -> None:
    context = folder / "base"
    context.mkdir()
    # As slim images do: no manuals. What is made here lives for minutes, so dpkg need not wait for the disk.
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-pip", *left_out]
    command += ["--dpkgopt=force-unsafe-io", SUITE, str(context / "debian.tar")]
    try:
        made = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoBuilderError(f"mmdebstrap got no Debian within {_DOWNLOAD_SECONDS} s") from None
    if made.returncode:
        errors = [line for line in made.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
        raise NoBuilderError(f"mmdebstrap got no Debian: {(errors or ['no reason given'])[0]}")
    (context / "Containerfile").write_text("FROM scratch\nADD debian.tar /\n")
    _run(["buildah", "build", "--quiet", "--tag", _BASE, str(context)], environment)
    shutil.rmtree(context)


def _make_image(environment: Mapping[str, str]) -> None:
    options = ["--quiet", "--pull-never"]
    if _CERTIFICATES.exists():  # where a proxy stands before the package index, its authority is known here alone
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
