"""Custom resources as their users write them, each with a share, and the pods that preview finds in them."""

from typing import NamedTuple


class Custom(NamedTuple):
    """One object, what preview calls its pods, and which of them are granted."""

    text: str
    titles: dict[str, str]


TEMPLATE = """\
      metadata: {annotations: {gpu-share: "0.2"}}
      spec:
        containers:
        - {name: main, image: "vllm/vllm-openai:v0.11.0"}
"""


def _under(head: str, *, by: int = 0) -> str:
    return head + "".join(f"{' ' * by}{line}\n" for line in TEMPLATE.splitlines())


RAY_GROUPS = """\
    headGroupSpec:
      rayStartParams: {dashboard-host: 0.0.0.0}
      template: {spec: {containers: [{name: head, image: rayproject/ray}]}}
    workerGroupSpecs:
    - groupName: cpu
      template: {spec: {containers: [{name: worker, image: rayproject/ray}]}}
    - groupName: gpu
      template:
        metadata: {annotations: {gpu-share: "0.2"}}
        spec:
          containers:
          - name: worker
            image: rayproject/ray
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
          volumes: [{name: shm, emptyDir: {medium: Memory}}]
"""
HEAD = "metadata: {name: it, namespace: ns}\n"


def _ray(kind: str, prefix: str) -> Custom:
    at = f"spec.{prefix}" if prefix else "spec"
    holder = f"spec:\n  {prefix}:\n" if prefix else "spec:\n"
    return Custom(
        f"apiVersion: ray.io/v1\nkind: {kind}\n{HEAD}{holder}{RAY_GROUPS}",
        {
            f"{at}.headGroupSpec.template": "untouched",
            f"{at}.workerGroupSpecs[0].template": "untouched",
            f"{at}.workerGroupSpecs[1].template": "granted",
        },
    )


def _training(kind: str, field: str) -> Custom:
    head = f"apiVersion: kubeflow.org/v1\nkind: {kind}\n{HEAD}spec:\n  {field}:\n"
    head += "    Worker:\n     replicas: 2\n     template:\n"
    return Custom(_under(head, by=2), {f"spec.{field}.Worker.template": "granted"})


def _argo(kind: str, prefix: str = "") -> Custom:
    indent = "  " if prefix else ""
    spec = """\
  entrypoint: main
  templates:
  - name: main
    dag: {tasks: [{name: a, template: train}]}
  - name: train
    metadata: {annotations: {gpu-share: "0.2"}}
    container: {image: "vllm/vllm-openai:v0.11.0", args: ["{{inputs.parameters.model}}"]}
    sidecars: [{name: log, image: app}]
  - name: script
    metadata: {annotations: {gpu-share: "20%"}}
    script: {image: python, source: print()}
  - name: set
    containerSet: {containers: [{name: a, image: app}, {name: b, image: app}]}
    metadata: {annotations: {container.gpu-share.dev/b: "0.1"}}
"""
    body = "".join(f"{indent}{line}\n" for line in spec.splitlines())
    at = f"spec.{prefix}" if prefix else "spec"
    holder = f"spec:\n  {prefix}:\n" if prefix else "spec:\n"
    return Custom(
        f"apiVersion: argoproj.io/v1alpha1\nkind: {kind}\n{HEAD}{holder}{body}",
        {f"{at}.templates[{index}]": "granted" for index in (1, 2, 3)},
    )


def _plain(api_version: str, kind: str) -> Custom:
    return Custom(_under(f"apiVersion: {api_version}\nkind: {kind}\n{HEAD}spec:\n    template:\n"), {"": "granted"})


INFERENCE_SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: it, namespace: ns}
spec:
  predictor:
    annotations: {gpu-share: "0.2"}
    minReplicas: 1
    model:
      modelFormat: {name: huggingface}
      image: vllm/vllm-openai:v0.11.0
      args: [--model=m]
      storageUri: hf://m
  transformer:
    containers: [{name: kserve-container, image: app}]
"""
NOTEBOOK = """\
apiVersion: kubeflow.org/v1
kind: Notebook
metadata: {name: it, namespace: ns, annotations: {gpu-share: "0.2", notebooks.kubeflow.org/x: v}}
spec:
  template:
    spec:
      containers:
      - {name: it, image: jupyter, volumeMounts: [{name: dshm, mountPath: /dev/shm}]}
      volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
"""
_RUNTIME = (
    'metadata: {name: it, namespace: ns}\nspec: {annotations: {gpu-share: "0.2"}, containers: [{name: k, image: i}]}\n'
)
_JOBS = (
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
    + HEAD
    + "spec:\n  replicatedJobs:\n  - name: w\n    template:\n     spec:\n      template:\n"
)
_GROUP = (
    "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n"
    + HEAD
    + "spec:\n  leaderWorkerTemplate:\n    workerTemplate:\n"
)
_KNATIVE = (
    "apiVersion: serving.knative.dev/v1\nkind: KIND\n"
    + HEAD
    + 'spec:\n  template:\n    metadata: {annotations: {gpu-share: "0.2"}}\n'
    + "    spec: {containers: [{image: app}]}\n"
)
_VOLCANO = (
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n" + HEAD + "spec:\n  tasks:\n  - replicas: 1\n    template:\n"
)
_RUNTIMES = (
    "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: KIND\n"
    + HEAD
    + "spec:\n template:\n  spec:\n   replicatedJobs:\n   - name: node\n     template:\n      spec:\n       template:\n"
)

CUSTOM: dict[str, Custom] = {
    "InferenceService": Custom(INFERENCE_SERVICE, {"spec.predictor": "granted", "spec.transformer": "untouched"}),
    **{
        kind: Custom(f"apiVersion: serving.kserve.io/v1alpha1\nkind: {kind}\n{_RUNTIME}", {"spec": "granted"})
        for kind in ("ServingRuntime", "ClusterServingRuntime")
    },
    "RayCluster": _ray("RayCluster", ""),
    "RayJob": _ray("RayJob", "rayClusterSpec"),
    "RayService": _ray("RayService", "rayClusterConfig"),
    "Notebook": Custom(NOTEBOOK, {"": "granted"}),
    "PyTorchJob": _training("PyTorchJob", "pytorchReplicaSpecs"),
    "TFJob": _training("TFJob", "tfReplicaSpecs"),
    "MPIJob": _training("MPIJob", "mpiReplicaSpecs"),
    "XGBoostJob": _training("XGBoostJob", "xgbReplicaSpecs"),
    "PaddleJob": _training("PaddleJob", "paddleReplicaSpecs"),
    "JAXJob": _training("JAXJob", "jaxReplicaSpecs"),
    "TrainingRuntime": Custom(
        _under(_RUNTIMES.replace("KIND", "TrainingRuntime"), by=3),
        {"spec.template.spec.replicatedJobs[0].template.spec.template": "granted"},
    ),
    "ClusterTrainingRuntime": Custom(
        _under(_RUNTIMES.replace("KIND", "ClusterTrainingRuntime"), by=3),
        {"spec.template.spec.replicatedJobs[0].template.spec.template": "granted"},
    ),
    "Workflow": _argo("Workflow"),
    "WorkflowTemplate": _argo("WorkflowTemplate"),
    "ClusterWorkflowTemplate": _argo("ClusterWorkflowTemplate"),
    "CronWorkflow": _argo("CronWorkflow", "workflowSpec"),
    "Rollout": _plain("argoproj.io/v1alpha1", "Rollout"),
    "JobSet": Custom(_under(_JOBS, by=2), {"spec.replicatedJobs[0].template.spec.template": "granted"}),
    "LeaderWorkerSet": Custom(_under(_GROUP), {"spec.leaderWorkerTemplate.workerTemplate": "granted"}),
    "Service": Custom(_KNATIVE.replace("KIND", "Service"), {"": "granted"}),
    "Configuration": Custom(_KNATIVE.replace("KIND", "Configuration"), {"": "granted"}),
    "Job": Custom(_under(_VOLCANO), {"spec.tasks[0].template": "granted"}),
}
