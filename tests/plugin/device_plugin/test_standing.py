"""For how long a kubelet has not known a resource, by a clock that a test sets."""

import pytest

from plugin.device_plugin.standing import Standing

# What is seen, and when; empty: the kubelet knows the resource.
Story = list[tuple[float, str]]


@pytest.mark.parametrize(
    ("story", "at_seconds", "lasting"),
    [
        ([], 29, ""),
        ([], 30, "the kubelet has not answered yet"),  # it hangs in the first call
        ([(0, "away")], 29, ""),
        ([(0, "away"), (5, "rejected")], 30, "rejected"),
        ([(0, "away"), (20, "")], 60, ""),
        ([(0, ""), (100, "away")], 129, ""),
        ([(0, ""), (100, "away")], 130, "away"),
        ([(0, ""), (100, "away"), (110, ""), (200, "away")], 229, ""),
        ([(0, ""), (100, "away"), (140, "")], 146, ""),
    ],
)
def test_what_has_lasted_for_half_a_minute_is_told_with_the_last_reason(
    story: Story, at_seconds: float, lasting: str
) -> None:
    assert after(story, at_seconds) == lasting


def test_being_known_for_a_moment_again_and_again_is_no_end() -> None:
    flapping = [(at, why) for at in range(0, 40, 2) for why in ("", "ended")]
    assert after([(0, ""), *((100 + at, why) for at, why in flapping)], 141) == "ended"


def after(story: Story, at_seconds: float) -> str:
    now = [0.0]
    standing = Standing(lambda: now[0])
    for now[0], why in story:
        standing.see(why)
    now[0] = at_seconds
    return standing.lasting
