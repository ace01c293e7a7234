import pytest

from plugin.errors import ControlError
from plugin.mps.control import ServerState, percentage, server_pids, server_state


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
    ("answer", "number"), [("20.0\n", 20.0), ("100", 100.0), ("12.5%", 12.5), ("", None), ("nan", None), ("-1", None)]
)
def test_a_percentage_is_a_decimal(answer: str, number: float | None) -> None:
    assert percentage(answer) == number
