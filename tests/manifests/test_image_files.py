"""What the image is built of reaches its builder, which takes nothing that .dockerignore does not name."""

import re

from tests.manifests.render import ROOT


def test_everything_that_the_image_copies_is_let_in() -> None:
    lines = (ROOT / "manifests" / "Containerfile").read_text().splitlines()
    copied = {
        word
        for line in lines
        if re.match(r"COPY (?!--from)", line)
        for word in line.split()[1:-1]  # the last one is where it goes
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = tuple(line.removeprefix("!") for line in ignored if line.startswith("!"))
    assert {"console", "gpu_share.py", "requirements.lock"} <= copied
    assert [
        one for one in sorted(copied) if not any(one == name or one.startswith(f"{name}/") for name in allowed)
    ] == []
