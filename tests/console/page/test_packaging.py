"""What an installation of the console has beside Python."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "console" / "page"
HTMX = "4.0.1"  # dist/htmx.min.js of the package htmx.org, as published
HTMX_SHA256 = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"


def test_the_script_is_the_one_that_was_published_and_has_its_licence() -> None:
    content = (PAGE / "static" / "htmx.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == HTMX_SHA256
    assert f'"{HTMX}"' in content.decode()
    assert "Permission to use, copy, modify" in (PAGE / "static" / "htmx.LICENSE").read_text()


def test_a_wheel_has_every_template_and_static_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    own = [path for directory in ("templates", "static") for path in (PAGE / directory).rglob("*") if path.is_file()]
    assert len(own) > 15
    with zipfile.ZipFile(wheel) as made:
        for path in own:
            assert made.read(str(path.relative_to(ROOT))) == path.read_bytes()
