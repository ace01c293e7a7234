from hypothesis import example, given
from hypothesis import strategies as st

from policies.paths import is_within, normal

PATHS = st.lists(st.sampled_from(["/", "a", "ab", ".", "..", "x"]), max_size=6).map("".join).map(normal)


@given(PATHS, PATHS)
@example("/a", "/")
@example("/ab", "/a")
@example("/a/b", "/a")
def test_a_path_is_within_a_directory_if_its_steps_begin_with_those_of_the_directory(path: str, directory: str) -> None:
    steps, begin = path.split("/")[1:], [step for step in directory.split("/")[1:] if step]
    assert is_within(path, directory) == (steps[: len(begin)] == begin)
