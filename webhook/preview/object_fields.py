"""The fields of an object that are read beside those of a pod: of the object, and of what stands in it for a pod."""

from typing import Any

from policies.pod import Container, Part, PathText, PodSecurityContext, ResourceClaim, Volume, VolumeMount

_Texts = dict[str, str | None]  # nothing behind a key is an empty string


class Texts(Part, frozen=True):
    """What a pod takes over of some metadata."""

    annotations: _Texts | None = None
    labels: _Texts | None = None


class OwnMetadata(Texts, frozen=True):
    """Of an object."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None


class AnyObject(Part, frozen=True):
    """An object of any kind."""

    metadata: OwnMetadata | None = None


class TemplateFields(Part, frozen=True):
    """A pod template; its spec is read as a pod's."""

    metadata: Texts | None = None


class InlineFields(Texts, frozen=True):
    """The fields of a pod's spec, which are read as a pod's, among others."""

    containers: list[dict[str, Any]] | None = None


class FieldsWithMetadata(InlineFields, frozen=True):
    """The same with metadata beside them."""

    metadata: Texts | None = None


class ContainerSet(Part, frozen=True):
    """Several containers of an Argo template."""

    containers: list[Container] | None = None
    volume_mounts: list[VolumeMount] | None = None


class _Argo(Part, frozen=True):
    """What a workflow and its templates may both say of a pod."""

    volumes: list[Volume] | None = None
    node_selector: _Texts | None = None
    tolerations: list[dict[str, Any]] | None = None
    scheduler_name: str | None = None
    security_context: PodSecurityContext | None = None
    resource_claims: list[ResourceClaim] | None = None


class ArgoTemplateFields(_Argo, frozen=True):
    """A template of a workflow."""

    metadata: Texts | None = None
    container: dict[str, Any] | None = None
    script: dict[str, Any] | None = None
    container_set: ContainerSet | None = None
    init_containers: list[Container] | None = None
    sidecars: list[Container] | None = None


class _WorkflowSpec(_Argo, frozen=True):
    """Of a workflow."""

    pod_metadata: Texts | None = None
    template_defaults: ArgoTemplateFields | None = None


class _OuterSpec(_WorkflowSpec, frozen=True):
    """Of a workflow, or of what has one in it."""

    workflow_spec: _WorkflowSpec | None = None


class Workflow(AnyObject, frozen=True):
    """A workflow, its template, or its schedule."""

    spec: _OuterSpec | None = None


class _VolcanoVolume(Part, frozen=True):
    """A claim that all tasks of a Volcano Job mount."""

    mount_path: PathText
    volume_claim_name: str | None = None


class _VolcanoSpec(Part, frozen=True):
    """Of a Volcano Job."""

    scheduler_name: str | None = None
    volumes: list[_VolcanoVolume] | None = None


class VolcanoJob(AnyObject, frozen=True):
    """What a Volcano Job says for all its tasks."""

    spec: _VolcanoSpec | None = None


class _ClaimTemplate(Part, frozen=True):
    """A claim that each pod of a StatefulSet gets."""

    metadata: OwnMetadata | None = None


class _StatefulSpec(Part, frozen=True):
    """Of a StatefulSet."""

    volume_claim_templates: list[_ClaimTemplate] | None = None


class StatefulSet(AnyObject, frozen=True):
    """What a StatefulSet says of its pods beside their template."""

    spec: _StatefulSpec | None = None
