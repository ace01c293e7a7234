"""Where pods with a share may run: what a policy adds to them."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from policies.form import LabelKey, LabelValue, Section, Subdomain, TaintKey
from policies.pod import OwnToleration, Pod

_MOST = 64  # labels, and tolerations: far above what any node is chosen by, and all of it is in each answer
_MOST_SECONDS = 2**63 - 1  # as the API has it


class Toleration(Section, frozen=True, kw_only=True, omit_defaults=True):
    """A toleration as the Kubernetes API has it."""

    key: TaintKey | None = None
    operator: Literal["Equal", "Exists"] | None = None  # an API server has Lt and Gt only behind a feature gate
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Meta(examples=[300], ge=-_MOST_SECONDS, le=_MOST_SECONDS)] | None = None

    def __post_init__(self) -> None:
        """Check what the API server would reject in every pod."""
        if not self.key and self.operator != "Exists":
            raise ValueError("a toleration without key needs operator: Exists: add one of the two")
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with operator: Exists has no value: remove one of the two")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("tolerationSeconds needs effect: NoExecute: add it")


class Placement(Section, frozen=True, kw_only=True):
    """Where pods with a share may run. A pod that says otherwise itself is denied."""

    node_selector: Annotated[
        dict[LabelKey, LabelValue],
        Meta(description="Labels that the node must have, added to the pod's own.", max_length=_MOST),
    ] = msgspec.field(default_factory=dict)
    tolerations: Annotated[list[Toleration], Meta(description="Added to the pod's own.", max_length=_MOST)] = (
        msgspec.field(default_factory=list)
    )
    runtime_class_name: Annotated[
        Subdomain | None, Meta(description="RuntimeClass of pods with a share, for instance nvidia.")
    ] = None
    scheduler_name: Annotated[
        Subdomain | None, Meta(description="Scheduler of pods with a share.", examples=["volcano"])
    ] = None


def missing_tolerations(pod: Pod, wanted: Sequence[Toleration]) -> list[Toleration]:
    """List those of *wanted* that the pod does not carry exactly so."""
    if not wanted:
        return []
    own = {_said(one) for one in pod.spec.tolerations or ()}
    return [one for one in wanted if _said(one) not in own]


def _said(one: Toleration | OwnToleration) -> tuple[str | int | None, ...]:
    """Read the fields, those that are empty as those that are not there."""
    return one.key or None, one.operator or None, one.value or None, one.effect or None, one.toleration_seconds
