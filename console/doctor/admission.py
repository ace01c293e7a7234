"""What the API server asks and checks at admission for gpu-share, as it has been configured."""

from typing import Final

import msgspec

from console.objects import Metadata
from console.words import Shown
from policies.contract import NAMESPACE

# The admission policies of pods, by what they validate.
CREATED_POLICY: Final = NAMESPACE
CHANGED_POLICY: Final = f"{NAMESPACE}-changes"
LOCKDOWN_POLICY: Final = f"{NAMESPACE}-lockdown"  # which a cluster may have
LOCKDOWN_CLAIMS_POLICY: Final = f"{LOCKDOWN_POLICY}-claims"  # and this one with it
# Those that leave out namespaces by their names.
EXEMPTING_POLICIES: Final = (CREATED_POLICY, CHANGED_POLICY, LOCKDOWN_POLICY, LOCKDOWN_CLAIMS_POLICY)

NAME_LABEL: Final = "kubernetes.io/metadata.name"  # of a namespace: its name
_HTTPS: Final = 443  # the port of a Service for whose webhook none is named


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A Service that answers for a webhook, at a path."""

    namespace: Shown = Shown("")
    name: Shown = Shown("")
    path: Shown = Shown("")
    port: int = _HTTPS

    def __str__(self) -> str:
        """Write it as an address."""
        port = "" if self.port == _HTTPS else f":{self.port}"
        return f"https://{self.name}.{self.namespace}.svc{port}{self.path}"


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the API server reaches a webhook."""

    ca_bundle: str = ""  # base64
    service: Service | None = None
    url: Shown = Shown("")  # instead of a Service


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on labels."""

    key: str = ""
    operator: str = ""
    values: tuple[Shown, ...] = ()


class Selector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Conditions on labels."""

    match_expressions: tuple[Expression, ...] = ()
    match_labels: dict[str, str] = {}

    @property
    def selects_all(self) -> bool:
        """Whether it has no condition."""
        return not self.conditions

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """All of them: a label that must have a value is one too."""
        labels = sorted(self.match_labels.items())
        of_labels = (Expression(key=key, operator="In", values=(Shown(value),)) for key, value in labels)
        return (*self.match_expressions, *of_labels)

    @property
    def excluded(self) -> set[str]:
        """The namespaces that it leaves out by their names."""
        return {
            str(value)
            for one in self.match_expressions
            if one.key == NAME_LABEL and one.operator == "NotIn"
            for value in one.values
        }


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Operations on resources that a webhook or an admission policy is asked of."""

    operations: tuple[Shown, ...] = ()
    api_groups: tuple[Shown, ...] = ()
    api_versions: tuple[Shown, ...] = ()
    resources: tuple[Shown, ...] = ()
    scope: Shown = Shown("*")  # Namespaced, Cluster, or both
    resource_names: tuple[Shown, ...] = ()  # of admission policies: these objects alone

    def covers(self, operation: str, resource: str, *, group: str, scope: str) -> bool:
        """Say whether it is asked of such a request in version v1, with a subresource after a slash."""
        parent, _, subresource = resource.partition("/")
        resources = {resource, "*/*", f"{parent}/*" if subresource else "*"}
        return (
            not {operation, "*"}.isdisjoint(self.operations)
            and not {group, "*"}.isdisjoint(self.api_groups)
            and not {"v1", "*"}.isdisjoint(self.api_versions)
            and not resources.isdisjoint(self.resources)
            and self.scope in (scope, "*")
            and not self.resource_names
        )


class MatchCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a request, in CEL."""

    name: str = ""
    expression: str = ""


class Webhook(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A webhook."""

    name: Shown = Shown("")
    client_config: ClientConfig = ClientConfig()
    failure_policy: Shown = Shown("")
    reinvocation_policy: Shown = Shown("")
    match_policy: Shown = Shown("")
    admission_review_versions: tuple[Shown, ...] = ()
    rules: tuple[Rule, ...] = ()
    namespace_selector: Selector = Selector()
    object_selector: Selector = Selector()
    match_conditions: tuple[MatchCondition, ...] = ()


class WebhookConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The webhooks of gpu-share, as the API server has them."""

    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] = ()


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A value that an admission policy computes, in CEL."""

    name: str = ""
    expression: str = ""


class Validation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an admission policy demands, in CEL, and what it says of what lacks it."""

    expression: str = ""
    message: str = ""
    message_expression: str = ""


class MatchConstraints(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which requests an admission policy is for."""

    resource_rules: tuple[Rule, ...] = ()
    exclude_resource_rules: tuple[Rule, ...] = ()
    match_policy: Shown = Shown("")
    namespace_selector: Selector = Selector()
    object_selector: Selector = Selector()


class ParamKind(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of the objects that an admission policy is parametrized by."""

    kind: Shown = Shown("")


class AdmissionPolicySpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an admission policy says."""

    param_kind: ParamKind | None = None
    failure_policy: Shown = Shown("")
    match_constraints: MatchConstraints = MatchConstraints()
    match_conditions: tuple[MatchCondition, ...] = ()
    variables: tuple[Variable, ...] = ()
    validations: tuple[Validation, ...] = ()


class AdmissionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A ValidatingAdmissionPolicy."""

    metadata: Metadata = Metadata()
    spec: AdmissionPolicySpec = AdmissionPolicySpec()

    def variable(self, name: str) -> str:
        """Give the expression of a variable; empty if there is none."""
        return next((one.expression for one in self.spec.variables if one.name == name), "")


class BindingSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a binding says."""

    policy_name: Shown = Shown("")
    validation_actions: tuple[str, ...] = ()
    match_resources: MatchConstraints = MatchConstraints()


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """A ValidatingAdmissionPolicyBinding: without one, a policy checks nothing."""

    metadata: Metadata = Metadata()
    spec: BindingSpec = BindingSpec()
