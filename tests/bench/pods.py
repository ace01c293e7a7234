"""Pods of three sizes, as the API server sends them: defaulted, with probes, volumes and a service account's token."""

import json
from typing import Any

SIZES = {"small": 3_000, "typical": 8_000, "large": 60_000}  # bytes of the review


def _container(name: str, image: str, args: list[str], variables: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8501, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    return {
        "name": name,
        "image": image,
        "args": args,
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}-of-{name}"} for n in range(variables)],
        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "2", "memory": "4Gi"}},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }


def _managed_fields(variables: int) -> dict[str, Any]:
    """What the API server notes about who set which field; a third of a real review."""
    owned: dict[str, Any] = {"f:image": {}, "f:args": {}, "f:name": {}, "f:resources": {".": {}, "f:limits": {}}}
    owned["f:env"] = {f'k:{{"name":"SETTING_{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(variables)}
    fields = {
        "f:metadata": {"f:annotations": {".": {}, "f:gpu-share": {}}, "f:generateName": {}, "f:labels": {".": {}}},
        "f:spec": {"f:containers": {'k:{"name":"server"}': owned}, "f:volumes": {".": {}}, "f:tolerations": {}},
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-20T09:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _pod(variables: int) -> dict[str, Any]:
    args = ["--model_name=resnet", "--model_base_path=/models/resnet", "--rest_api_port=8501"]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": "resnet-7d4b9c6f5-",
            "namespace": "team-0",
            "labels": {"app": "resnet", "pod-template-hash": "7d4b9c6f5", "app.kubernetes.io/part-of": "vision"},
            "annotations": {"gpu-share": "0.2", "prometheus.io/scrape": "true", "prometheus.io/port": "8501"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "resnet-7d4b9c6f5", "uid": "0" * 36}
            ],
            "managedFields": [_managed_fields(variables)],
        },
        "spec": {
            "volumes": [
                {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            ],
            "containers": [_container("server", "tensorflow/serving:2.19.1-gpu", args, variables)],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": f"node.kubernetes.io/{one}", "operator": "Exists", "effect": "NoExecute"}
                for one in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
        },
    }


def _review(variables: int) -> dict[str, Any]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": kind,
        "namespace": "team-0",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["system:nodes"]},
        "object": _pod(variables),
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def review_of(size: int) -> bytes:
    """Build a review of at least *size* bytes by giving its container more variables."""
    variables = 0
    while len(body := json.dumps(_review(variables), separators=(",", ":")).encode()) < size:
        variables += 1
    return body
