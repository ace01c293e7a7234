"""A glob of images fits what fnmatch says, from any slash on, and takes no longer for an image made for that."""

import re
import time
from fnmatch import translate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.image_glob import ImageGlob

PIECES = ["a", "b", "/", "*", "?", "-", "[", "]", "!", "[ab]", "[!a]", "[]a]", "[b-a]", "[*]", "[?", "\\", "^", "ab"]
SLASHES = ["*vllm*", "*/vllm*", "?*vllm*", "[a-z]*vllm*", "a*/*vllm*", "a/[a-z]*[0-9]*-serve", "*a?x*", "a*b"]


def fits(glob: str, repository: str) -> bool:
    path = f"/{repository}"
    one = ImageGlob(glob)
    assert one.has in path or not one.fits(path)
    return one.fits(path)


@given(st.lists(st.sampled_from(PIECES), max_size=7).map("".join), st.text("ab/-[]!*?\\^\n", max_size=9))
@example("a*a", "a")
@example("ab*b", "x/ab")
@example("[!]*", "x/[!]b")
@example("*", "")
@example("?", "a/")
def test_a_glob_fits_what_fnmatch_says_from_any_slash_on(glob: str, repository: str) -> None:
    expected = re.fullmatch(f"(?:.*/)?(?:{translate(glob)})", repository, re.DOTALL) is not None
    assert fits(glob, repository) == expected


@pytest.mark.parametrize("glob", SLASHES)
@pytest.mark.parametrize("unit", ["a/", "v/", "-/", "vllm/", "a"])
def test_four_times_the_image_takes_about_four_times_as_long(glob: str, unit: str) -> None:
    one = ImageGlob(glob)
    short, long = (f"/{unit * (length // len(unit))}-serv" for length in (4_000, 16_000))
    assert any(_seconds(one, long) <= 8 * _seconds(one, short) + 2e-5 for _ in range(5))


def _seconds(glob: ImageGlob, path: str) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        glob.fits(path)
        times.append(time.perf_counter() - began)
    return min(times)
