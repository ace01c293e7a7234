import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.errors import ControlError
from plugin.mps.answers import ServerState, keeps_memory_limit, percentage, server_pids, server_state


@pytest.mark.parametrize(
    ("answer", "pids"), [("", ()), ("\n", ()), ("4242\n", (4242,)), ("1\n2\n", (1, 2)), ("7\n7\n", (7,))]
)
def test_a_list_of_servers_is_a_pid_on_each_line(answer: str, pids: tuple[int, ...]) -> None:
    assert server_pids(answer) == pids


@pytest.mark.parametrize("answer", ["No MPS servers\n", "server list is empty", "Servers: none"])
def test_that_there_is_no_server_may_be_said_in_words(answer: str) -> None:
    assert server_pids(answer) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "-1",
        "0",
        "4242 ACTIVE",
        "no",
        "the server is gone",
        "Failed to connect to MPS server: no such process",
        "Error: no response from the server",
        "Cannot find MPS control daemon process",
        "٤٢",
        "1" * 30,
        "\n".join(str(pid) for pid in range(1, 18)),
    ],
)
def test_anything_else_is_no_list_of_servers(answer: str) -> None:
    with pytest.raises(ControlError, match="expected a few PIDs, one on each line, got"):
        server_pids(answer)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("ACTIVE\n", "ACTIVE"),
        ("INITIALIZING", "INITIALIZING"),
        ("Server 4242 is in FAULT state", "FAULT"),
        ("status: ACTIVE.", "ACTIVE"),
        ("DRAINING\n", "UNKNOWN"),  # a newer driver's
        ("INACTIVE", "UNKNOWN"),
    ],
)
def test_the_state_of_a_server_is_a_word_of_the_answer(answer: str, state: ServerState) -> None:
    assert server_state(answer) == state


@pytest.mark.parametrize("answer", ["", "active", "ACTIVE FAULT", "A", "NO SERVER", "Server 4242 not found"])
def test_anything_else_is_no_state(answer: str) -> None:
    with pytest.raises(ControlError, match="expected one of INITIALIZING, ACTIVE, FAULT, got"):
        server_state(answer)


def test_an_error_quotes_the_answer_on_one_line_and_not_all_of_it() -> None:
    with pytest.raises(ControlError) as raised:
        server_state("what\n\x1b[2J " + "x" * 1000)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("answer", "limit_mib"),
    [
        ("5G\n", 5120),  # an A100 and a T4, as they were seen
        ("3G\n", 3840),
        ("4G\n", 3840),
        ("28754M", 28754),
        ("28G", 28754),
        ("28.08G", 28754),
        ("28754 MiB", 28754),
        ("Device 0: 28 GB", 28754),
        ("GPU-00000000-1111-2222-3333-444444444444=28754M", 28754),
        ("28754", 28754),
        ("0: 28754", 28754),
        (str(28754 << 20), 28754),
        ("0G", 512),
        ("512M", 512),
        ("1T", 1048576),
    ],
)
def test_a_limit_on_memory_is_kept_however_it_is_rounded(answer: str, limit_mib: int) -> None:
    assert keeps_memory_limit(answer, limit_mib)


@pytest.mark.parametrize(
    ("answer", "limit_mib"),
    [
        ("", 28754),
        ("\n", 28754),
        ("0", 28754),
        ("0M", 512),
        ("0G", 28754),
        ("5G", 28754),
        ("140G", 28754),
        ("28755M", 28754),
        ("28G 140G", 28754),
        ("-28754M", 28754),
        ("no limit", 28754),
        ("unlimited", 28754),
        ("Invalid device 0", 28754),
        ("GPU-28754000-1111-2222-3333-444444444444", 28754),
        ("18446744073709551615", 28754),
        ("9" * 10_000, 28754),
        ("28754X", 28754),
        ("0T", 28754),
        ("1T", 28754),
        ("1T", 1048576 + 1024),
        ("v28754M", 28754),
    ],
)
def test_any_other_answer_is_a_limit_that_is_not_kept(answer: str, limit_mib: int) -> None:
    assert not keeps_memory_limit(answer, limit_mib)


@given(st.text(max_size=100), st.integers(1, 1 << 24))
def test_no_answer_fails_to_be_read(answer: str, limit_mib: int) -> None:
    keeps_memory_limit(answer, limit_mib)


@given(st.integers(1, 1 << 24))
def test_what_is_written_is_kept_in_each_unit(limit_mib: int) -> None:
    for answer in (f"{limit_mib}M", f"{limit_mib >> 10}G", f"{limit_mib << 10}K", f"{limit_mib << 20}"):
        assert keeps_memory_limit(answer, limit_mib)


@pytest.mark.parametrize(
    ("answer", "number"), [("20.0\n", 20.0), ("100", 100.0), ("12.5%", 12.5), ("", None), ("nan", None), ("-1", None)]
)
def test_a_percentage_is_a_decimal(answer: str, number: float | None) -> None:
    assert percentage(answer) == number
