"""Events of Kubernetes: what they are about, when they were last seen, and pods that were not created."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from console.objects import Object
from console.words import Shown, moment

_LATELY_SECONDS: Final = 20 * 60  # controllers try again after 16 minutes at the latest
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_NOT_CREATED: Final = "Error creating: "  # before what the API server said
# By which controllers warn that a pod was not created: those of Kubernetes and Volcano, Kubeflow's training operator,
# and KubeRay. A field selector has no "or", and a cluster can have very many warnings: so each is asked for by itself.
NOT_CREATED_REASONS: Final = ("FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod")


class Involved(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an event is about."""

    kind: Shown = Shown("")
    namespace: Shown = Shown("")
    name: Shown = Shown("")
    uid: str = ""
    api_version: Shown = Shown("")  # with its group: several have a Job


class Series(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How often an event of the newer API has come again."""

    count: int | None = None
    last_observed_time: Shown | None = None


class Event(Object, frozen=True, kw_only=True):
    """An event."""

    involved_object: Involved = Involved()
    type: Shown = Shown("")
    reason: Shown = Shown("")
    message: Shown = Shown("")
    count: int | None = None
    last_timestamp: Shown | None = None
    event_time: Shown | None = None  # of the newer API: when it was first seen
    series: Series | None = None

    @property
    def at(self) -> Shown | None:
        """When it was last seen; None if it does not say."""
        last = self.series.last_observed_time if self.series else None
        return last or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def order(self) -> datetime:
        """When it was last seen, to compare: of two clients one may write fractions, or another zone."""
        return moment(self.at) or _LONG_AGO

    @property
    def times(self) -> int:
        """How often it was seen."""
        return (self.series.count if self.series else None) or self.count or 1

    @property
    def said(self) -> str:
        """The message; of a pod that was not created, what the API server said."""
        return self.message.removeprefix(_NOT_CREATED)

    def is_recent(self, now: datetime) -> bool:
        """Whether it holds still for what is tried again and again, as far as it says when it was."""
        passed = now - (moment(self.at) or now)
        return passed.total_seconds() <= _LATELY_SECONDS
