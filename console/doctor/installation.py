"""What only `gpu-share doctor` looks at: API server, installation and policies. None is what cannot be seen."""

from typing import Final

import msgspec

from console.objects import Metadata
from console.seen import Seen, Unseen
from console.words import Shown
from policies.policy_set import PolicySet

SUCCEEDED: Final = range(200, 300)  # of HTTP


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the API server reaches a webhook."""

    ca_bundle: str = ""  # base64


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on labels."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class Selector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Conditions on labels."""

    match_expressions: tuple[Expression, ...] = ()


class MatchCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a request, in CEL."""

    expression: str = ""


class Webhook(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A webhook."""

    name: Shown = Shown("")
    client_config: ClientConfig = ClientConfig()
    namespace_selector: Selector = Selector()
    match_conditions: tuple[MatchCondition, ...] = ()


class WebhookConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The webhooks of gpu-share, as the API server has them."""

    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] = ()


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace."""

    metadata: Metadata = Metadata()


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a pod with an invalid share that was to be created, with nothing created."""

    namespace: str
    status: int
    message: Shown


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    seen: Seen
    version: Shown | None = None  # of the API server
    apis: frozenset[str] | None = None  # such as resource.k8s.io/v1
    rights: dict[str, bool] | None = None  # to install, by what is to be created
    webhook: WebhookConfiguration | None = None
    has_webhook: bool | None = None  # False if it is known not to be there
    attempt: Attempt | None = None
    ready: dict[str, str] = {}  # what /readyz of each webhook pod says
    serving_certificate: bytes | None = None  # PEM
    policies: PolicySet | None = None
    policy_problems: tuple[str, ...] | None = None
    namespaces: dict[str, dict[str, str]] | None = None  # labels by name
    unseen: dict[str, Unseen] = {}  # by the name of the field
