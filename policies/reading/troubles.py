"""Problems in policy files while others are in force: what each of them costs, and how the log says so."""

import logging
from collections.abc import Iterable

import msgspec

from policies.errors import Problem


class Trouble(msgspec.Struct, frozen=True, order=True):
    """A problem in a policy file, and what follows from it."""

    problem: Problem
    policy: str  # the namespace, `_cluster` or `_default`; empty if the file counts for none of them
    effect: str  # a sentence without a full stop

    def below(self, directory: str) -> "Trouble":
        """Name the file by its path from *directory* on."""
        return Trouble(self.problem.below(directory), self.policy, self.effect)

    def __str__(self) -> str:
        return f"{self.problem}; {self.effect}"


class TroubleLog:
    """Logs each trouble once, for as long as it is there."""

    def __init__(self, log: logging.Logger, *, effect: str = "") -> None:
        """Log to *log*; *effect* is what follows of policies in a process to which they mean something else."""
        self._log = log
        self._effect = effect
        self._told: frozenset[Trouble] = frozenset()

    def tell(self, troubles: Iterable[Trouble]) -> None:
        """Log those of *troubles*, all there are now, that the last call did not have."""
        now = tuple(troubles)
        for trouble in now:
            if trouble not in self._told:
                problem, effect = trouble.problem, self._effect_of(trouble)
                place = {"file": problem.file, "line": problem.line, "field": problem.field}
                self._log.log(
                    logging.ERROR if trouble.policy else logging.WARNING,
                    "policy file broken",
                    extra=place | {"problem": problem.message, "policy": trouble.policy, "effect": effect},
                )
        self._told = frozenset(now)

    def _effect_of(self, trouble: Trouble) -> str:
        is_policys = trouble.policy not in ("", "_cluster")
        return (self._effect if is_policys else trouble.effect) or trouble.effect or self._effect
