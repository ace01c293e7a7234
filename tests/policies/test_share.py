from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import GpuShareError, ShareError
from policies.share import Headroom, Share, milli_text

ACCEPTED = [
    ("0.2", 200),
    ("0.200", 200),
    ("0.25", 250),
    ("0.001", 1),
    ("0.999", 999),
    ("1", 1000),
    ("1.0", 1000),
    ("1.000", 1000),
    ("2", 2000),
    ("16", 16000),
    ("20%", 200),
    ("0.1%", 1),
    ("12.5%", 125),
    ("12.50%", 125),
    ("100%", 1000),
    ("200%", 2000),
    ("100.0%", 1000),
    ("9" * 24, int("9" * 24) * 1000),
]

REFUSED = [
    "",
    " ",
    "0",
    "0.0",
    "0.000",
    "0%",
    ".2",
    ".25",
    "0.",
    "1.",
    "0.2000",
    "0.0001",
    "0.05%",
    "12.55%",
    "1.5",
    "1.001",
    "150%",
    "100.1%",
    "2.5",
    "00.2",
    "01",
    "010%",
    "+0.2",
    "-0.2",
    "-1",
    "\u22120.2",
    "0,2",
    "0.2f",
    "2e-1",
    "1e0",
    "1E1",
    "0x1",
    "0b1",
    "1_000",
    "1/5",
    "0.2 ",
    " 0.2",
    "0.2\n",
    "20%\n",
    "\n0.2",
    "0.2\x00",
    "0.2\r\n",
    "20 %",
    "20%%",
    "%",
    "%20",
    "0.2.0",
    "\u0660.\u0662",
    "0.\u0662",
    "\uff10.\uff12",
    "\u00b2",
    "\u2460",
    "NaN",
    "inf",
    "Infinity",
    "true",
    "None",
    "one",
    "9" * 25,
    "0." + "2" * 23,
    "1" + "0" * 10_000,
    "2Gi",
    "200m",
]


@pytest.mark.parametrize(("text", "milli"), ACCEPTED)
def test_a_share_is_read_exactly(text: str, milli: int) -> None:
    assert Share.parse(text).milli == milli


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_share_is_denied_with_one_short_printable_sentence(text: str) -> None:
    with pytest.raises(ShareError) as caught:
        Share.parse(text)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) <= 256
    assert isinstance(caught.value, GpuShareError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0", "is zero"),
        ("0.000%", "is zero"),
        ("1.5", "is above 1 and not a whole number of GPUs"),
        ("0.05%", "is finer than a thousandth of a GPU"),
        ("half", "is not a decimal with at most three places, a percentage or a whole number"),
    ],
)
def test_the_reason_fits_the_fault(text: str, reason: str) -> None:
    with pytest.raises(ShareError) as caught:
        Share.parse(text)
    assert caught.value.reason == reason


def test_every_share_of_every_division_is_the_exact_ceiling() -> None:
    for milli in range(1, 1001):
        share = Share.parse(f"0.{milli:03d}") if milli < 1000 else Share.parse("1")
        for per_gpu in range(1, 101):
            exact = Fraction(milli, 1000) * per_gpu
            assert share.vgpus(per_gpu) == ceil(exact)
            assert share.is_exact(per_gpu) is (exact.denominator == 1)


def test_three_tenths_of_ten_are_three() -> None:
    assert Share.parse("0.3").vgpus(10) == 3
    assert Share.parse("30%").vgpus(10) == 3
    assert Share.parse("0.29").vgpus(100) == 29
    assert Share.parse("0.57").vgpus(100) == 57


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_whole_gpus_are_all_their_vgpus(gpus: int) -> None:
    share = Share.parse(str(gpus))
    assert share.is_whole
    assert all(share.vgpus(per_gpu) == gpus * per_gpu and share.is_exact(per_gpu) for per_gpu in range(1, 101))


@given(st.integers(1, 1000) | st.integers(1, 10**6).map(lambda gpus: gpus * 1000))
def test_a_written_share_is_read_back(milli: int) -> None:
    share = Share.parse(str(Share(milli)))
    assert share == milli
    assert Share.parse(str(share)) == share
    assert repr(share) == f'Share.parse("{share}")'


@given(st.integers(1, 999))
def test_a_percentage_says_the_same_as_its_decimal(milli: int) -> None:
    assert Share.parse(f"{milli // 10}.{milli % 10}%") == Share.parse(f"0.{milli:03d}")


@given(st.text(max_size=30) | st.text("0123456789.%-+eE \n", max_size=30))
def test_any_text_is_a_share_or_a_share_error(text: str) -> None:
    try:
        share = Share.parse(text)
    except ShareError:
        return
    assert text.isascii()
    value = Fraction(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    assert value * 1000 == share.milli > 0


@pytest.mark.parametrize(("text", "milli"), [("0", 0), ("0%", 0), ("0.02", 20), ("2%", 20), ("0.999", 999)])
def test_headroom_may_be_zero(text: str, milli: int) -> None:
    assert Headroom.parse(text) == milli
    assert Headroom.parse(str(Headroom(milli))) == milli


@pytest.mark.parametrize("text", ["1", "1.0", "100%", "2", "-0.1", "", "0.02\n"])
def test_headroom_is_below_one(text: str) -> None:
    with pytest.raises(ShareError):
        Headroom.parse(text)


@pytest.mark.parametrize(("milli", "text"), [(0, "0"), (1, "0.001"), (10, "0.01"), (200, "0.2"), (1000, "1")])
def test_thousandths_are_written_as_the_shortest_decimal(milli: int, text: str) -> None:
    assert milli_text(milli) == text
