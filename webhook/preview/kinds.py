"""
Where the pods stand in the objects of each kind: the built-in ones, and the custom resources that hold GPU workloads.

A path names fields from the object on; `*` stands for each item of a list or each value of a mapping.
"""

import msgspec

from webhook.preview.argo import NESTED, ArgoTemplate
from webhook.preview.knative import KnativeTemplate
from webhook.preview.kserve import ServingComponent, ServingRuntime
from webhook.preview.ray import RayTemplate
from webhook.preview.shapes import Shape, Template, TemplateOfObject
from webhook.preview.stateful import StatefulTemplate
from webhook.preview.volcano import VolcanoTask


class Known(msgspec.Struct, frozen=True):
    """A kind whose pods can be found."""

    paths: tuple[str, ...]
    source: str  # where its fields are defined
    shape: Shape = Template()
    annotations_at: str = "its pod template's metadata"  # where a share belongs, for who wrote it elsewhere
    nested: tuple[str, ...] = ()  # where more of its pods stand in one of them, and so on
    patches: tuple[str, ...] = ()  # fields by which the controller changes its pods, and which are not read
    pod_patches: tuple[str, ...] = ()  # such fields of what stands for a pod

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of Kubernetes' own, whose template must be there."""
        return self.source == _KUBERNETES

    @property
    def holds_several(self) -> bool:
        """Whether one object can hold several pods."""
        return len(self.paths) > 1 or "*" in self.paths[0]


_KUBERNETES = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/"
_RAY = "https://github.com/ray-project/kuberay/tree/master/ray-operator/apis/ray/v1"
_KSERVE = "https://github.com/kserve/kserve/tree/master/pkg/apis/serving"
_TRAINING = "https://github.com/kubeflow/training-operator/tree/release-1.9/pkg/apis/kubeflow.org/v1"
_TRAINER = "https://github.com/kubeflow/trainer/tree/master/pkg/apis/trainer/v1alpha1"
_NOTEBOOK = "https://github.com/kubeflow/notebooks/tree/notebooks-v1/components/notebook-controller"
_ARGO = "https://github.com/argoproj/argo-workflows/blob/main/pkg/apis/workflow/v1alpha1/workflow_types.go"
_ROLLOUT = "https://github.com/argoproj/argo-rollouts/blob/master/pkg/apis/rollouts/v1alpha1/types.go"
_JOBSET = "https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go"
_LWS = "https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go"
_KNATIVE = "https://github.com/knative/serving/blob/main/pkg/apis/serving/v1/revision_types.go"
_VOLCANO = "https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/job.go"

_OWN_METADATA = TemplateOfObject(
    "with the annotations and labels of the Notebook, which its controller copies", not_copied=("kubectl", "notebook")
)
_RAY_POD = RayTemplate()
_GROUPS = ("", "apps", "batch", "extensions")


def _ray(*prefix: str) -> tuple[str, ...]:
    at = ".".join(("spec", *prefix))
    return f"{at}.headGroupSpec.template", f"{at}.workerGroupSpecs.*.template"


def _argo(at: str) -> Known:
    patches = tuple(f"{holder}.podSpecPatch" for holder in (at, f"{at}.templateDefaults"))
    place = "the metadata of the template, or spec.podMetadata"
    return Known((f"{at}.templates.*",), _ARGO, ArgoTemplate(), place, NESTED, patches, ("podSpecPatch",))


def _runtime() -> Known:
    return Known(("spec", "spec.workerSpec"), f"{_KSERVE}/v1alpha1", ServingRuntime(), "spec.annotations")


def _training(field: str) -> Known:
    return Known((f"spec.{field}.*.template",), _TRAINING)


_BUILT_IN = {
    "Pod": "",
    "PodTemplate": "template",
    **dict.fromkeys(("Deployment", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"), "spec.template"),
    "CronJob": "spec.jobTemplate.spec.template",
}

_KNOWN: dict[tuple[str, str], Known] = {
    **{(group, kind): Known((path,), _KUBERNETES) for kind, path in _BUILT_IN.items() for group in _GROUPS},
    **{(group, "StatefulSet"): Known(("spec.template",), _KUBERNETES, StatefulTemplate()) for group in _GROUPS},
    ("ray.io", "RayCluster"): Known(_ray(), _RAY, _RAY_POD),
    ("ray.io", "RayJob"): Known((*_ray("rayClusterSpec"), "spec.submitterPodTemplate"), _RAY, _RAY_POD),
    ("ray.io", "RayService"): Known(_ray("rayClusterConfig"), _RAY, _RAY_POD),
    ("serving.kserve.io", "InferenceService"): Known(
        ("spec.predictor", "spec.predictor.workerSpec", "spec.transformer", "spec.explainer"),
        f"{_KSERVE}/v1beta1",
        ServingComponent(),
        "the annotations of its predictor, transformer or explainer",
    ),
    **{("serving.kserve.io", kind): _runtime() for kind in ("ServingRuntime", "ClusterServingRuntime")},
    ("kubeflow.org", "Notebook"): Known(("spec.template",), _NOTEBOOK, _OWN_METADATA, "the Notebook's own metadata"),
    ("kubeflow.org", "PyTorchJob"): _training("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _training("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _training("mpiReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _training("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _training("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _training("jaxReplicaSpecs"),
    **{
        ("trainer.kubeflow.org", kind): Known(("spec.template.spec.replicatedJobs.*.template.spec.template",), _TRAINER)
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    },
    **{("argoproj.io", kind): _argo("spec") for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")},
    ("argoproj.io", "CronWorkflow"): _argo("spec.workflowSpec"),
    ("argoproj.io", "Rollout"): Known(("spec.template",), _ROLLOUT),
    ("jobset.x-k8s.io", "JobSet"): Known(("spec.replicatedJobs.*.template.spec.template",), _JOBSET),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Known(
        ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"), _LWS
    ),
    **{
        ("serving.knative.dev", kind): Known(("spec.template",), _KNATIVE, KnativeTemplate())
        for kind in ("Service", "Configuration")
    },
    ("batch.volcano.sh", "Job"): Known(("spec.tasks.*.template",), _VOLCANO, VolcanoTask()),
}


def known_kind(api_version: object, kind: str) -> Known | None:
    """Return where the pods of a kind are; None if that is not known."""
    return _KNOWN.get((str(api_version or "").rpartition("/")[0], kind))


def kinds_table() -> str:
    """Write the custom resources as a Markdown table."""
    rows = [
        f"| [{kind}]({one.source}) | {group} | {', '.join(f'`{path}`' for path in one.paths)}{_nested(one)} |"
        for (group, kind), one in _KNOWN.items()
        if not one.is_built_in
    ]
    return "\n".join(["| kind | group | its pods |", "| --- | --- | --- |", *rows])


def _nested(known: Known) -> str:
    return f", and in each {', '.join(f'`{path}`' for path in known.nested)}" if known.nested else ""
