"""What is done about the memory settings of a container with a share: made, lowered, warned of or denied."""

from collections.abc import Mapping

from policies.contract import (
    FRAMEWORK_ANNOTATION,
    FRAMEWORK_ANNOTATION_PREFIX,
    MILLI_PER_GPU,
    NO_FRAMEWORK,
)
from policies.denial import Findings
from policies.errors import quoted
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget
from policies.frameworks.detection import Catalogue
from policies.frameworks.judge import OwnValue
from policies.frameworks.memory import Advice, Wish, advise
from policies.pod import Pod, Slot, named
from policies.policy import EffectivePolicy

_FIX = "Lower it to the share"
_FIXES = {"bytes": "Write a percentage within the share", "unread": "Write it out, within the share"}
_WRITE_IT = "Write it out, or as --option=$(NAME) where it is another option's"
_READABLE = frozenset({"above", "boundless", "bytes"})
_OR_REMOVE_IT = ", or remove it and it is set for you"  # not in the text of a shell, to which nothing is added
_WHY = {
    "above": "more than the share",
    "boundless": "which some frameworks take for no limit",
    "unread": "which cannot be read",
    "any": "which cannot be read",
    "bytes": "a number of bytes, which cannot be compared with a share of a GPU that is not known yet",
    "unexpanded": "which the kubelet does not expand there",
}


def wish_for(container: str, annotations: Mapping[str, str], *, detects: bool) -> Wish:
    """Read what the annotations of a pod say of the framework in one container."""
    name = annotations.get(f"{FRAMEWORK_ANNOTATION_PREFIX}{container}", annotations.get(FRAMEWORK_ANNOTATION))
    return Wish(name, adds=name != NO_FRAMEWORK, detects=detects)


def _place(one: OwnValue) -> str:
    """Name a setting, and the variable in whose text it stands, which may be any sentence."""
    return f"{one.name} in the variable {quoted(one.variable, 50)}" if one.variable else one.name


class MemoryCheck:
    """The check of one pod: what users have set is judged in every container with a share, whatever runs there."""

    def __init__(
        self, pod: Pod, policy: EffectivePolicy, catalogue: Catalogue, allowance: Allowance, found: Findings
    ) -> None:
        """Check *pod* under *policy*; *allowance* is counted down, and *found* is added to."""
        self._annotations = pod.metadata.annotations or {}
        self._policy = policy
        self._catalogue = catalogue
        self._found = found
        self._allowance = allowance

    def of(self, slot: Slot, budget: Budget) -> Advice:
        """Say what the container's framework needs, and warn of or deny what is above the share."""
        wish = wish_for(slot.name, self._annotations, detects=self._policy.policy.frameworks.detect)
        advice = advise(slot.container, wish, budget, self._catalogue, self._allowance)
        lowered: set[str] = set()
        for one in advice.own:
            if one.verdict == "overriding":
                self._check_overriding(slot, one, budget, is_its_own=one.framework is advice.framework)
            elif one.verdict == "taken":
                what = f"the program is started without {one.name}, by {one.value}"
                self._check_missed(slot, what, one, budget)
            elif one.verdict == "replaced":
                self._check_missed(slot, f"{one.name} is set to {one.value}, without the share", one, budget)
            elif one.verdict == "any":
                self._warn_of(slot, one, budget)
            elif one.verdict != "within":
                self._check_value(slot, one, budget, lowered)
        if wish.name is not None and wish.adds and wish.name not in self._catalogue.frameworks:
            self._found.warn(f"framework {quoted(wish.name)} is not in the catalogue, so no memory setting was made")
        elif advice.warning:
            self._found.warn(advice.warning)
        return advice

    def _check_value(self, slot: Slot, one: OwnValue, budget: Budget, lowered: set[str]) -> None:
        """Lower the value, warn of it or deny it; each setting that is *lowered* is warned of once."""
        is_unread = one.verdict == "unread" or not one.is_certain
        sets = "sets" if one.is_certain else "may set"
        sets = f"{named(slot)} {sets} {_place(one)} to {one.value}, {_WHY[one.verdict]}"
        lower_it = _FIXES.get(one.verdict, _FIX) + _OR_REMOVE_IT * (one.change is not None)
        if self._policy.policy.frameworks.on_conflict == "deny" and one.framework is not None:
            self._deny(sets, lower_it, by=self._policy.source("frameworks.onConflict"))
        elif is_unread and not budget.is_held and self._policy.policy.frameworks.unread == "deny":
            fix = lower_it if one.verdict in _READABLE else _WRITE_IT
            self._deny(f"{sets}: under time-slicing nothing else limits its memory", one.fix or fix)
        elif one.change is not None:
            done = "lowered" if one.verdict in ("above", "boundless") else "replaced by the share"
            text = f"{quoted(slot.name, 30)}: {_place(one)} was {one.value}, {_WHY[one.verdict]}: {done}"
            self._found.change(None if _place(one) in lowered else text)
            lowered.add(_place(one))
        elif not (is_unread or (budget.is_held and (one.verdict == "bytes" or one.variable))):
            self._deny(f"{sets}, where it cannot be lowered", lower_it)
        else:
            self._warn_of(slot, one, budget)

    def _warn_of(self, slot: Slot, one: OwnValue, budget: Budget) -> None:
        """Say what stays although it may be too much; where all of the GPU is the container's, nothing is."""
        if budget.share < MILLI_PER_GPU:
            it_is = f"{_place(one)} {'is' if one.is_certain else 'may be'} {one.value}"
            limits = "MPS limits it" if budget.is_held else "nothing else limits its memory"
            self._found.warn(f"{quoted(slot.name, 30)}: {it_is}, {_WHY[one.verdict]}; {limits}")

    def _check_overriding(self, slot: Slot, one: OwnValue, budget: Budget, *, is_its_own: bool) -> None:
        """Deny what makes a framework ignore its share; *is_its_own*: the one that the container runs."""
        if budget.is_held or one.framework is None:
            return
        who = one.framework.name if is_its_own else f"a framework such as {one.framework.name}"
        sets = "sets" if one.is_certain else "may set"
        what = f"{named(slot)} {sets} {_place(one)}, with which {who} takes memory whatever its share is"
        self._deny(f"{what}: under time-slicing nothing else limits it", f"Remove {one.name}")

    def _check_missed(self, slot: Slot, what: str, one: OwnValue, budget: Budget) -> None:
        if not budget.is_held:
            self._deny(f"{named(slot)}: {what}: under time-slicing nothing else limits its memory", one.fix)
        elif budget.share < MILLI_PER_GPU:
            ceiling = ", to the daemon's ceiling where MPS's variables are taken as well" * (one.verdict == "taken")
            self._found.warn(f"{quoted(slot.name, 30)}: {what}; MPS limits it{ceiling}")

    def _deny(self, what: str, fix: str, *, by: object = None) -> None:
        self._found.deny("MemoryArgumentAboveShare", what, fix, by=by)
