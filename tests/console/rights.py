"""A stand-in for an API server that answers what a user has the right to, and nothing else."""

from dataclasses import dataclass, field

from tests.console.stand_in import Reply, StandIn, status_of

Right = tuple[str, str, str]  # verb, resource and namespace; empty for what is in none, or all


@dataclass
class Granting(StandIn):
    """One whose user has some rights."""

    rights: set[Right] = field(default_factory=set)

    def reply(self, path: str, query: dict[str, list[str]]) -> Reply:
        """Answer, or name the right that is missing as an API server does."""
        verb, resource, namespace = needed = _needed(path)
        if needed in self.rights:
            return super().reply(path, query)
        told = f'{resource} is forbidden: User "viewer" cannot {verb} resource "{resource}"'
        return status_of(403, f'{told} in API group "" in the namespace "{namespace}"')


def granting(known: StandIn, *rights: Right) -> Granting:
    """Make one that knows the same."""
    return Granting(**vars(known), rights=set(rights))


def _needed(path: str) -> Right:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[0] == "namespaces" and len(parts) > 2:
        return (*_verb(parts[2:]), parts[1])
    return (*_verb(parts), "")


def _verb(parts: list[str]) -> tuple[str, str]:
    resource = "/".join((parts[0], *parts[2:3]))
    return "list" if len(parts) == 1 else "get", resource
