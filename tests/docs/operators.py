"""The pods that operators make of their custom resources: where annotations end up, and what is added to containers."""

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]


def pods_of(document: Object) -> Iterator[Object]:
    """
    Yield the pods of a custom resource, or of the values of JupyterHub's chart.

    Raises:
        ValueError: If nothing is known of its kind.
    """
    metadata, spec = document.get("metadata", {}), document.get("spec", {})
    match document.get("kind"):
        case "InferenceService":  # KServe in Knative mode
            predictor = spec["predictor"]
            annotations = metadata.get("annotations", {}) | predictor.get("annotations", {})
            around = _containers("queue-proxy")
            yield _pod(annotations, [*predictor["containers"], *around], init=_containers("storage-initializer"))
        case "RayCluster":
            for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
                template = group["template"]
                annotations = template.get("metadata", {}).get("annotations", {})
                yield _pod(annotations, template["spec"]["containers"], init=_containers("wait-gcs-ready"))
        case "Notebook":  # of Kubeflow, which copies annotations unless their keys contain these words
            annotations = metadata.get("annotations", {})
            copied = {
                key: value for key, value in annotations.items() if "kubectl" not in key and "notebook" not in key
            }
            yield _pod(copied, spec["template"]["spec"]["containers"])
        case "Workflow":  # of Argo, which puts a container of its own first, and says which one is the user's
            for template in spec["templates"]:
                annotations = {"kubectl.kubernetes.io/default-container": "main"}
                annotations |= template.get("metadata", {}).get("annotations", {})
                main = {"name": "main"} | template["container"]
                yield _pod(annotations, [*_containers("wait"), main], init=_containers("init"))
        case None if "singleuser" in document:
            yield from _notebooks(document["singleuser"])
        case kind:
            raise ValueError(f"what pods does a {kind} have?")


def _notebooks(singleuser: Object) -> Iterator[Object]:
    init = _containers("block-cloud-metadata") if singleuser["cloudMetadata"]["blockWithIptables"] else []
    for container in init:
        container["securityContext"] = {"privileged": True}
    for profile in singleuser["profileList"]:
        chosen = profile.get("kubespawner_override", {})
        container = {"name": "notebook", "image": chosen.get("image", "quay.io/jupyterhub/k8s-singleuser-sample:4.3.0")}
        yield _pod(chosen.get("extra_annotations", {}), [container], init=init)


def _pod(annotations: Object, containers: list[Object], init: list[Object] | None = None) -> Object:
    metadata = {"name": "made", "annotations": annotations}
    spec = {"containers": containers} | ({"initContainers": init} if init else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _containers(*names: str) -> list[Object]:
    return [{"name": name, "image": f"example/{name}:1"} for name in names]
