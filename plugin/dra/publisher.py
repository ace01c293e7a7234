"""
Publishes the node's ResourceSlices, and again whenever they are gone.

The kubelet removes them when it restarts, and 30 seconds after it has lost the driver.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic

from plugin.dra.api_server import SLICES, ApiError, ApiServer, Watch
from plugin.dra.slice_objects import FieldsMissingError, Objects, reconcile, selector, withdraw
from plugin.dra.slices import Spec
from plugin.errors import DraError

_log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.1  # events come in groups: one for each slice
_LOOK_SECONDS = 300.0  # should an event be missed
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 1.0, 60.0
_LONGEST_WATCH_RETRY_SECONDS = 10.0  # what is removed meanwhile is seen only then


class Publisher:
    """
    Keeps the slices of *node* as they should be. Run it in a thread, and a `SliceWatch` in another.

    They are there while a kubelet knows the driver: of a pod that is bound to the node without it, the kubelet would
    prepare the claim in vain, and try again only 75 to 90 seconds later.
    """

    def __init__(self, api: Objects, *, node: str, before: Callable[[], None] = lambda: None) -> None:
        """Call *before* each time, in the thread of the slices: it may take long."""
        self._api = api
        self._node = node
        self._before = before
        self._specs: tuple[Spec, ...] | None = None
        self._wake = Event()
        self._is_urgent = False  # there is something new to write
        self._not_before = 0.0  # what has failed is tried again, in seconds of the monotonic clock
        self._is_registered = False
        self._is_published = False
        self._is_in_conflict = False  # the last time: once is nothing, the slices were changed meanwhile
        self._stopping = False
        self._retry_seconds = _FIRST_RETRY_SECONDS
        self._refusal = ""  # why the kubelet does not know the driver; empty if it does, or has not said
        self._is_withdrawn = False  # since then
        self.problem = ""  # why the API server does not have the slices as they should be, in one sentence

    @property
    def not_published(self) -> str:
        """Say why the slices are not as they should be, whatever was published before; empty if they are."""
        return self._fault or ("" if self._is_published else self._awaited)

    @property
    def told(self) -> str:
        """Say how the slices are, for people."""
        if self._fault:
            return f"slices not published: {self._fault}"
        return "slices published" if self._is_published else f"slices not published yet: {self._awaited}"

    @property
    def _fault(self) -> str:
        return f"the kubelet does not register the driver: {self._refusal}" if self._refusal else self.problem

    @property
    def _awaited(self) -> str:
        return "no GPU has been found yet" if self._specs is None else "waiting for the kubelet"

    def publish(self, specs: Sequence[Spec]) -> None:
        """Take over what the slices should say."""
        if tuple(specs) != self._specs:
            self._specs = tuple(specs)
            self._hurry()

    def registered(self, why_not: str = "") -> None:
        """
        Begin: a kubelet knows the driver now. After its restart the slices are gone, and this is called again.

        End where it says *why_not*: it could start no pod that is sent here.
        """
        self._is_registered, self._is_withdrawn, self._refusal = not why_not, False, why_not
        self._hurry()

    def look(self) -> None:
        """Let it be seen whether the slices are still there, from any thread; after a failure, when its time comes."""
        self._wake.set()

    def run(self) -> None:
        """Go on until `stop`."""
        wait_seconds = _LOOK_SECONDS
        while not self._stopping:
            if self._wake.wait(wait_seconds):
                self._wake.clear()
                # What was written in vain is seen as well, and would be tried again without an end.
                if not self._is_urgent and (left_seconds := self._not_before - monotonic()) > 0:
                    wait_seconds = left_seconds
                    continue
            self._is_urgent = False
            wait_seconds = self._reconcile()
        if self._is_registered or (self._refusal and not self._is_withdrawn):
            self._withdraw()

    def stop(self) -> None:
        """Take the slices back and let `run` return, from any thread."""
        self._stopping = True
        self._hurry()

    def _hurry(self) -> None:
        self._is_urgent = True
        self._wake.set()

    def _reconcile(self) -> float:
        """Reconcile once; the seconds until the next look are returned."""
        if self._refusal and not (self._is_withdrawn or self._stopping):
            return self._take_back()
        if self._specs is None or self._stopping or not self._is_registered:
            self.problem = ""  # of taking back what is wanted again by now
            return _LOOK_SECONDS
        specs = self._specs
        self._before()
        try:
            if reconcile(self._api, self._node, specs):
                devices = sum(len(spec.get("devices", ())) for spec in specs)
                _log.info("slices published", extra={"slices": len(specs), "devices": devices})
        except FieldsMissingError as error:
            self._say(error)
            self._withdraw()
            self._retry_seconds = _LONGEST_RETRY_SECONDS
        except DraError as error:
            is_conflict = isinstance(error, ApiError) and error.is_conflict
            if self._is_in_conflict or not is_conflict:
                self._say(error)
            self._is_in_conflict = is_conflict
        else:
            self.problem, self._retry_seconds, self._is_published = "", _FIRST_RETRY_SECONDS, True
            self._not_before, self._is_in_conflict = 0.0, False
            return _LOOK_SECONDS
        return self._later()

    def _take_back(self) -> float:
        """Withdraw, also what an earlier plugin has left; the seconds until the next look are returned."""
        if not self._withdraw():
            return self._later()
        self.problem, self._retry_seconds = "", _FIRST_RETRY_SECONDS
        self._is_published, self._is_withdrawn = False, True
        return _LOOK_SECONDS

    def _later(self) -> float:
        """Give the seconds until what has failed is tried again: more each time."""
        seconds, self._retry_seconds = self._retry_seconds, min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)
        self._not_before = monotonic() + seconds
        return seconds

    def _withdraw(self) -> bool:
        try:
            withdraw(self._api, self._node)
        except DraError as error:
            self._say(error)
            return False
        return True

    def _say(self, error: DraError) -> None:
        if str(error) != self.problem:
            self.problem = str(error)
            _log.error("slices not published, trying again", extra={"reason": self.problem})


class SliceWatch:
    """Calls *on_event* whenever a slice of *node* changes."""

    def __init__(self, api: ApiServer, *, node: str, on_event: Callable[[], None]) -> None:
        self._api = api
        self._selector = selector(node)
        self._on_event = on_event
        self._stopping = Event()
        self._watch: Watch | None = None

    def run(self) -> None:
        """Go on until `stop`."""
        retry_seconds = _FIRST_RETRY_SECONDS
        while not self._stopping.is_set():
            wait_seconds, retry_seconds = retry_seconds, min(2 * retry_seconds, _LONGEST_WATCH_RETRY_SECONDS)
            try:
                with self._api.watch(SLICES, fieldSelector=self._selector) as watch:
                    self._watch = watch
                    if self._stopping.is_set():  # since before there was anything to close
                        return
                    wait_seconds = retry_seconds = _FIRST_RETRY_SECONDS
                    for _ in watch.events():
                        if self._stopping.wait(_SETTLE_SECONDS):
                            return
                        self._on_event()
            except DraError as error:
                _log.debug("the watch has ended: %s", error)  # the publisher says what is wrong
            self._on_event()
            self._stopping.wait(wait_seconds)

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
