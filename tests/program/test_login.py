"""What requests show of their user is had anew when it is due, once for all who wait for it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import pytest

from program.login import Credential, CredentialError, Login


@dataclass
class Source:
    """Gives a credential for so many seconds, of which the last ten are to renew it."""

    lasts: float = 300.0
    now: float = 1_000_000.0
    fails: bool = False
    takes: float = 0.0
    asked: int = 0
    names: Iterator[int] = field(default_factory=count)

    def __call__(self) -> Credential:
        self.asked += 1
        time.sleep(self.takes)
        if self.fails:
            raise CredentialError("the plugin fails")
        end = self.now + self.lasts
        return Credential(f"Bearer {next(self.names)}", due=end - 10, end=end)

    def login(self) -> Login:
        return Login(self, clock=lambda: self.now)


def test_a_credential_is_had_again_only_shortly_before_it_expires() -> None:
    source = Source()
    login = source.login()
    for after, asked in ((0, 1), (289, 1), (1, 2), (0, 2), (289, 2), (1, 3)):
        source.now += after
        assert login.credential().authorization == f"Bearer {asked - 1}"
        assert source.asked == asked


def test_many_threads_have_it_once() -> None:
    source = Source(takes=0.05)
    login = source.login()
    source.now += 290
    with ThreadPoolExecutor(32) as threads:
        shown = set(threads.map(lambda _: login.credential().authorization, range(320)))
    assert (shown, source.asked) == ({"Bearer 1"}, 2)


def test_one_that_has_expired_as_it_comes_is_shown_and_had_again_after_a_pause() -> None:
    source = Source(lasts=-60)
    login = source.login()
    assert [login.credential().authorization for _ in range(20)] == ["Bearer 0"] * 20
    source.now += 5
    assert [login.credential().authorization for _ in range(20)] == ["Bearer 1"] * 20
    assert source.asked == 2


def test_a_clock_that_was_set_back_ends_no_pause() -> None:
    source = Source(lasts=-60)
    login = source.login()
    source.now -= 86_400
    login.reject(login.credential())
    assert login.credential().authorization == "Bearer 1"


def test_where_it_cannot_be_had_anew_it_is_shown_to_its_end_and_then_the_failure_is_said() -> None:
    source = Source()
    login = source.login()
    source.now += 290
    source.fails = True
    assert [login.credential().authorization for _ in range(20)] == ["Bearer 0"] * 20
    source.now += 10
    for _ in range(20):
        with pytest.raises(CredentialError, match="the plugin fails"):
            login.credential()
    assert source.asked == 2
    source.fails = False
    source.now += 20
    assert login.credential().authorization == "Bearer 1"


def test_one_that_the_api_server_rejects_is_had_again_once_for_all_of_whom_it_was() -> None:
    source = Source(lasts=86_400)
    login = source.login()
    source.now += 60
    shown = login.credential()
    for _ in range(20):
        login.reject(shown)
        assert login.credential().authorization == "Bearer 1"
    assert source.asked == 2


def test_without_a_credential_at_first_there_is_no_login() -> None:
    with pytest.raises(CredentialError, match="the plugin fails"):
        Source(fails=True).login()
