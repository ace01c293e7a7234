"""Who holds what: never more than a GPU has, whatever comes in whatever order, and after every kind of end."""

import json
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from time import sleep, thread_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.dra.calls import Calls
from plugin.dra.checkpoint import write_checkpoint
from plugin.dra.preparations import Preparations
from plugin.dra.specifications import device_id
from plugin.errors import ClaimError, HandoverError
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.shares.cdi_runtime import read_directory

GPUS = ("GPU-0", "GPU-1")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["prepare", "unprepare", "restart", "give up"]),
        st.integers(0, 5),
        st.integers(1, 10),
        st.sampled_from(GPUS),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_no_gpu_is_ever_given_away_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, str]]
) -> None:
    directory = tmp_path_factory.mktemp("d")
    on = made(directory)
    for what, number, tenths, gpu in steps:
        uid = f"u{number}"
        if what == "restart":
            on = made(directory)
        elif what == "unprepare":
            on.unprepare(uid)
        elif what == "give up":
            before = on.kept()
            with Calls().begin(lambda: False) as call, pytest.raises(ClaimError):
                prepare(on, uid, device(100 * tenths, gpu), call=call)
            assert on.kept() == before
        else:
            before = on.kept()
            try:
                prepare(on, uid, device(100 * tenths, gpu))
            except ClaimError:
                assert on.kept() == before
        claims = json.loads((directory / "checkpoint.json").read_text())["claims"] if on.kept() else {}
        for each in GPUS:
            held = [one["milli"] for claim in claims.values() for one in claim["devices"] if each in one["gpus"]]
            assert sum(held) <= 1000
        devices = {device_id(uid, "r") for uid in claims}
        assert set(read_directory(directory / "cdi")) == devices if (directory / "cdi").exists() else not devices


def test_a_disk_that_takes_long_holds_up_nobody_who_only_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on, asked, goes_on = made(tmp_path), Event(), Event()
    prepare(on, "old", device(100, "GPU-1"))

    def write(*arguments: Any) -> None:
        asked.set()
        assert goes_on.wait(10)
        write_checkpoint(*arguments)

    monkeypatch.setattr("plugin.dra.claim_files.write_checkpoint", write)
    calls = [
        Thread(target=prepare, args=[on, "new", device(600, "GPU-0")]),
        Thread(target=on.unprepare, args=["old"]),
    ]
    try:
        for call in calls:
            call.start()
            assert asked.wait(10)
            on.restore()
            assert on.gpus() == {"GPU-0", "GPU-1"}
            assert on.withdraw(["GPU-0", "GPU-1"]) == frozenset()
            on.follow({"GPU-0": "", "GPU-1": "broken"})
            assert len(on.kept()) == 2
            with pytest.raises(ClaimError, match="ns/claim-new"):
                prepare(on, "third", device(600, "GPU-0"))
    finally:
        goes_on.set()
        for call in calls:
            call.join()
    assert set(json.loads((tmp_path / "checkpoint.json").read_text())["claims"]) == {"new"}
    assert set(read_directory(tmp_path / "cdi")) == {device_id("new", "r")}


def test_a_claim_whose_specification_cannot_be_written_ends_nothing_and_is_prepared_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = made(tmp_path)

    def full(*_: Any) -> None:
        raise HandoverError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("plugin.dra.claim_files.write_specification", full)
        patched.setattr("plugin.dra.claim_files.restore_specification", full)
        with pytest.raises(HandoverError):
            prepare(on, "a", device(600, "GPU-0"))
        on.restore()
    prepare(on, "a", device(600, "GPU-0"))
    on.restore()
    assert set(read_directory(tmp_path / "cdi")) == {device_id("a", "r")}


def test_what_is_held_back_is_free_when_the_time_is_over(tmp_path: Path) -> None:
    now = [0.0]
    on = made(tmp_path, clock=lambda: now[0])
    prepare(on, "old", device(900, "GPU-0"))
    assert on.unprepare("old", hold_seconds=10)
    assert on.find("old") is None
    assert json.loads((tmp_path / "checkpoint.json").read_text())["claims"] == {}
    now[0] = 9.9
    with pytest.raises(ClaimError, match="ns/claim-old"):
        prepare(on, "new", device(900, "GPU-0"))
    now[0] = 10
    prepare(on, "new", device(900, "GPU-0"))


def test_what_is_held_back_stays_so_when_the_plugin_starts_anew(tmp_path: Path) -> None:
    now = [100.0]

    def start() -> Preparations:
        return made(tmp_path, clock=lambda: now[0])

    on = start()
    prepare(on, "old", device(900, "GPU-0"))
    on.unprepare("old", hold_seconds=10)
    now[0] = 105
    with pytest.raises(ClaimError, match="ns/claim-old"):
        prepare(start(), "new", device(900, "GPU-0"))
    prepare(start(), "other", device(900, "GPU-1"))  # what is written meanwhile does not end it
    with pytest.raises(ClaimError, match="ns/claim-old"):
        prepare(start(), "new", device(900, "GPU-0"))
    now[0] = 110
    prepare(start(), "new", device(900, "GPU-0"))


def test_what_a_file_holds_back_for_ever_is_not_believed(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "old", device(900, "GPU-0"))
    on.unprepare("old", hold_seconds=1e9)
    prepare(made(tmp_path), "new", device(900, "GPU-0"))


def test_who_waits_for_what_is_held_back_gets_it(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "old", device(900, "GPU-0"))
    on.unprepare("old", hold_seconds=0.2)
    prepare(on, "new", device(900, "GPU-0"), wait_seconds=30)


def test_several_whole_gpus_need_all_of_each(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "one", device(100, "GPU-1"))
    with pytest.raises(ClaimError, match=r"GPU-1 has 0\.9 free and 1 is needed: .* ns/claim-one \(one\)"):
        prepare(on, "two", device(2000, *GPUS))
    on.unprepare("one")
    prepare(on, "two", device(2000, *GPUS))


def test_after_a_change_of_the_number_no_gpu_is_given_away_beyond_its_whole(tmp_path: Path) -> None:
    on = made(tmp_path)
    for number in range(27):
        prepare(on, f"u{number}", device(35, "GPU-0", of=28))  # 945 thousandths by their sizes
    with pytest.raises(ClaimError, match=r"GPU-0 has 0\.035 free and 0\.056 is needed"):
        prepare(made(tmp_path), "next", device(55, "GPU-0", of=18))
    assert {part for _, part, _ in on.kept().values()} == {Fraction(1, 28)}


def test_two_devices_of_one_claim_add_up(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"1\.2 is needed"):
        prepare(made(tmp_path), "u", device(600, "GPU-0", request="a"), device(600, "GPU-0", request="b"))


def test_a_claim_waits_until_the_gpu_is_healthy(tmp_path: Path) -> None:
    on = made(tmp_path)
    on.follow({"GPU-0": "MPS daemon starting", "GPU-1": ""})
    with pytest.raises(ClaimError, match="GPU-0 is unhealthy: MPS daemon starting"):
        prepare(on, "u", device(100, "GPU-0"))
    waiting = Thread(target=prepare, args=[on, "u", device(100, "GPU-0")], kwargs={"wait_seconds": 30})
    waiting.start()
    prepare(on, "other", device(100, "GPU-1"))
    on.follow({"GPU-0": "", "GPU-1": ""})
    waiting.join(timeout=10)
    assert len(on.kept()) == 2


def test_who_waits_for_a_gpu_is_idle_though_something_was_held_back_before(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "old", device(900, "GPU-0"))
    on.unprepare("old", hold_seconds=0.01)
    sleep(0.02)
    on.follow({"GPU-0": "MPS daemon starting"})
    began_seconds = thread_time()
    with pytest.raises(ClaimError, match="GPU-0 is unhealthy"):
        prepare(on, "new", device(900, "GPU-0"), wait_seconds=0.5)
    assert thread_time() - began_seconds < 0.25


def test_nobody_waits_for_a_plugin_that_ends(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "old", device(1000, "GPU-0"))
    errors: list[str] = []

    def wait() -> None:
        try:
            prepare(on, "new", device(100, "GPU-0"), wait_seconds=30)
        except ClaimError as error:
            errors.append(str(error))

    waiting = Thread(target=wait)
    waiting.start()
    on.close()
    waiting.join(timeout=10)
    assert len(errors) == 1
