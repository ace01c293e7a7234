"""Of several CAs of one name each is tried, and no more is done where each has a name of its own."""

import pytest

from program.trust import one_of_each_name


@pytest.mark.parametrize(
    ("cas", "choices"),
    [
        ([], []),
        ([("a", b"1"), ("b", b"2")], []),
        ([("a", b"1"), ("a", b"2")], [[b"1"], [b"2"]]),
        ([("a", b"1"), ("b", b"x"), ("a", b"2"), ("a", b"3")], [[b"1", b"x"], [b"2", b"x"], [b"3", b"x"]]),
        ([("a", b"1"), ("a", b"2"), ("b", b"x"), ("b", b"y")], [[b"1", b"x"], [b"2", b"y"]]),
    ],
)
def test_each_ca_is_in_a_choice_of_one_of_each_name(cas: list[tuple[str, bytes]], choices: list[list[bytes]]) -> None:
    assert [*one_of_each_name(cas)] == choices


def test_a_bundle_with_very_many_cas_of_one_name_costs_no_more_than_eight_tries() -> None:
    assert len([*one_of_each_name([("a", bytes([number])) for number in range(100)])]) == 8
