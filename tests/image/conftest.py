"""An image takes minutes and root, so its tests run only where this directory is named: `make image-test`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.container import Image
from tests.image.debian import NoBuilderError, built_on_debian

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    asked_for = any(path.is_relative_to(HERE) for path in named)
    return True if collection_path.name == "test_image.py" and not asked_for else None


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """Yield the image that `make image` builds on a minimal Debian."""
    try:
        with built_on_debian() as image:
            yield image
    except NoBuilderError as reason:
        pytest.skip(f"the image was NOT built: {reason}")
