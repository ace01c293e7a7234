"""The Containerfile, and the command line with which a builder gets it; nothing is built here."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "manifests" / "Containerfile").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_base_has_a_name_and_a_tag_and_can_have_a_digest() -> None:
    base = re.search(r"^ARG BASE=(\S+)$", CONTAINERFILE, re.MULTILINE)
    assert base
    assert re.fullmatch(r"[a-z0-9.]+(/[a-z0-9.-]+)+:(?!latest)[\w.-]+(@sha256:[0-9a-f]{64})?", base[1])
    assert set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)) == {"${BASE}"}


def test_the_user_is_that_of_the_manifests() -> None:
    users = re.findall(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE)
    assert len(users) == 1
    wanted = set()
    for pod in pods():
        context = pod["securityContext"]
        wanted.add((str(context["runAsUser"]), str(context["runAsGroup"])))
    assert wanted - {("0", "0")} == set(users)  # the DaemonSets run as root, to access the kubelet's directories


def test_the_manifests_start_what_the_image_has() -> None:
    for pod in pods():
        for container in pod["containers"]:
            assert container["image"].rpartition("/")[2] == f"gpu-share:{VERSION}"
            assert container["command"][0] == "gpu-share"
    assert 'ENTRYPOINT ["gpu-share"]' in CONTAINERFILE


def test_everything_installed_from_the_network_is_locked_by_hash() -> None:
    installs = re.findall(r"pip (?:--python \S+ )?install ([^\n&]*)", CONTAINERFILE)
    assert len(installs) == 3
    for options in installs:
        assert "--no-deps" in options
        assert "--no-index" in options or re.search(r"--require-hashes .*-r \S+\.lock", options)


def test_what_the_containerfile_copies_is_in_the_build_context() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    sources = {name for line in copied for name in line.split()}
    assert {name if name in allowed else name.rpartition("/")[0] for name in sources} == allowed
    assert all((ROOT / name).exists() for name in sources)


@pytest.fixture
def builders(tmp_path: Path) -> Path:
    """Return a directory for PATH with the programs that the script needs, and no builder."""
    for program in ("bash", "dirname", "env", "rm", "sed"):
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)
    return tmp_path


def test_the_first_builder_that_works_builds(builders: Path) -> None:
    add_program(builders, "docker", 'echo "no daemon" >&2; exit 1')
    add_program(builders, "buildah", '[ "$1" = info ] || echo buildah "$@"')
    ran = build(builders)
    expected = "buildah build --file manifests/Containerfile --tag docker.io/library/gpu-share:"
    assert ran.stdout.startswith(f"{expected}{VERSION} --build-arg VERSION={VERSION}"), ran.stderr
    assert ran.stdout.endswith(" .\n")


def test_name_base_and_options_can_be_chosen(builders: Path) -> None:
    add_program(builders, "podman", '[ "$1" = info ] || echo podman "$@"')
    ran = build(
        builders, IMAGE="registry.example/team/share:2", BASE="registry.example/python:3.13", OPTIONS="--pull --quiet"
    )
    assert " --tag registry.example/team/share:2 " in ran.stdout
    assert ran.stdout.endswith(" --build-arg BASE=registry.example/python:3.13 --pull --quiet .\n")


@pytest.mark.parametrize("builder", ["docker", "podman", "buildah"])
def test_an_image_gets_the_name_that_kubelets_read_in_the_manifests(builders: Path, builder: str) -> None:
    add_program(builders, builder, '[ "$1" = info ] || echo "$@"')
    (name,) = {container["image"] for pod in pods() for container in pod["containers"]}
    assert f" --tag docker.io/library/{name} " in build(builders).stdout


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("gpu-share:dev", "docker.io/library/gpu-share:dev"),
        ("team/gpu-share:dev", "docker.io/team/gpu-share:dev"),
        ("localhost/gpu-share:dev", "localhost/gpu-share:dev"),
        ("localhost:5000/gpu-share:dev", "localhost:5000/gpu-share:dev"),
        ("registry.example/team/gpu-share:dev", "registry.example/team/gpu-share:dev"),
    ],
)
def test_a_name_without_a_registry_is_completed_as_docker_does(builders: Path, image: str, name: str) -> None:
    add_program(builders, "buildah", '[ "$1" = info ] || echo "$@"')
    assert f" --tag {name} " in build(builders, IMAGE=image).stdout


@pytest.mark.parametrize(
    ("builder", "saves"),
    [
        ("docker", "save --output {} {}"),
        ("podman", "save --output {} {}"),
        ("buildah", "push --quiet {1} docker-archive:{0}:{1}"),
    ],
)
def test_an_archive_is_saved_anew_under_the_name_of_the_manifests(
    builders: Path, tmp_path: Path, builder: str, saves: str
) -> None:
    archive = tmp_path / "gpu-share.tar"
    archive.write_text("an older image")
    add_program(builders, builder, f'case $1 in info) ;; build) ;; *) echo "$@"; [ ! -e {archive} ] ;; esac')
    ran = build(builders, ARCHIVE=str(archive))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == saves.format(archive, f"docker.io/library/gpu-share:{VERSION}") + "\n"


def test_a_failed_build_saves_no_archive(builders: Path, tmp_path: Path) -> None:
    add_program(builders, "buildah", '[ "$1" = info ] || { echo "$1"; exit 3; }')
    ran = build(builders, ARCHIVE=str(tmp_path / "gpu-share.tar"))
    assert (ran.returncode, ran.stdout) == (3, "build\n")


def test_without_a_builder_one_line_says_what_to_install(builders: Path) -> None:
    ran = build(builders)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "install" in ran.stderr
    assert "buildah" in ran.stderr


def pods() -> list[dict[str, Any]]:
    """Return the pod specs of manifests/install.yaml."""
    found = []
    for document in yaml.safe_load_all((ROOT / "manifests" / "install.yaml").read_text()):
        spec = document.get("spec", {})
        if "template" in spec:
            found.append(spec["template"]["spec"])
    assert len(found) == 4
    return found


def add_program(builders: Path, name: str, script: str) -> None:
    path = builders / name
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    path.chmod(0o755)


def build(builders: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(builders)} | variables
    return subprocess.run(
        [ROOT / "manifests" / "image" / "build"], env=environment, capture_output=True, text=True, check=False
    )
