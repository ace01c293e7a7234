"""The pods of KServe, as its controller makes them of an InferenceService and of a ServingRuntime."""

from typing import Any

from webhook.preview.places import is_request
from webhook.preview.shapes import Fields, Inline, added_metadata, mapping, merged

_MODELS = ("model", "huggingface", "triton", "tensorflow", "pytorch", "onnx", "sklearn", "xgboost", "lightgbm", "pmml",
           "paddle")  # fmt: skip
_CONTAINER = "kserve-container"
# https://github.com/kserve/kserve/blob/master/pkg/apis/serving/v1beta1/predictor.go
_NO_METADATA = "has no place in workerSpec, which has no annotations: the webhook adds it to the pod"
# https://github.com/kserve/kserve/blob/master/pkg/apis/serving/v1alpha1/servingruntime_types.go
_OF_RUNTIME = frozenset(
    {"affinity", "containers", "hostIPC", "imagePullSecrets", "nodeSelector", "tolerations", "volumes"}
)


class ServingComponent(Inline):
    """A component of an InferenceService; the workers of a predictor get its annotations too."""

    def __init__(self) -> None:
        """Take the container of a model, or else the first one, for the one that serves."""
        note = "as KServe makes it of this component, without what its ServingRuntime (an image, and so a framework) "
        super().__init__(f"{note}and KServe's own webhook add", container_at=_MODELS, container=_CONTAINER)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's, and the component's own, which are the predictor's for its workers."""
        own = _predictor(document) if _is_of_workers(document, holder) else holder
        return [mapping(document, "metadata"), own]

    def unwritable(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Say which requests of a pod of workers its predictor would have to make: KServe gives them no others."""
        if not _is_of_workers(document, holder):
            return []
        own = self._metadata(document, holder)["metadata"]["annotations"]
        return [
            f'{key}: "{text}" has no place: KServe gives workers the annotations of their predictor, where it is '
            f"{own.get(key) or 'not there'}: have both ask for the same"
            for key, text in added_metadata(before, after).get("annotations", {}).items()
            if is_request(key) and own.get(key) != text
        ]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Call the container that serves as KServe does, whatever it is called."""
        pod = super().build(document, holder)
        if pod is not None and self._renames(document, holder):
            first, *others = pod["spec"]["containers"]
            pod["spec"]["containers"] = [{**first, "name": _CONTAINER}, *others]
        return pod

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the fields, and the container's name as it was."""
        if self._renames(document, holder):
            first, *others = after["spec"]["containers"]
            own = holder["containers"][0]
            named = {**first, "name": own["name"]} if "name" in own else _without_name(first)
            after = {**after, "spec": {**after["spec"], "containers": [named, *others]}}
        if not _is_of_workers(document, holder):
            return super().put_back(document, holder, before, after)
        super().put_back(document, holder, before, {**after, "metadata": before["metadata"]})
        lost = [key for texts in added_metadata(self._metadata(document, holder), after).values() for key in texts]
        return [f"{' and '.join(lost)} {_NO_METADATA}"] if lost else []

    def _metadata(self, document: Fields, holder: Fields) -> Fields:
        """Return what KServe gives the pod of its object now."""
        return {"metadata": merged(self.annotations(document, holder))}

    def _renames(self, document: Fields, holder: Fields) -> bool:
        """Whether KServe gives the first container its name: of a predictor where there is no other, or it has none."""
        if self._field(holder) is not None or _is_of_workers(document, holder):
            return False
        match holder.get("containers"):
            case [dict(first), *others]:
                return holder is not _predictor(document) or not others or not first.get("name")
        return False


class ServingRuntime(Inline):
    """A ServingRuntime, or what it says of the workers of a predictor, which do not get its annotations."""

    def __init__(self) -> None:
        """Take the fields as they are, of which a runtime has some of a pod's."""
        note = "as KServe makes it of this runtime, without what an InferenceService adds"
        super().__init__(note, fields=_OF_RUNTIME)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """Those beside the fields."""
        del document
        return [holder]


def _predictor(document: Fields) -> Fields:
    return mapping(mapping(document, "spec"), "predictor")


def _is_of_workers(document: Fields, holder: Fields) -> bool:
    return _predictor(document).get("workerSpec") is holder


def _without_name(container: Fields) -> dict[str, Any]:
    return {key: value for key, value in container.items() if key != "name"}
