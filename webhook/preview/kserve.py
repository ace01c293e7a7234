"""The pods of KServe, as its controller makes them of an InferenceService and of a ServingRuntime."""

from typing import Any

from webhook.preview.places import is_request
from webhook.preview.shapes import Fields, Inline, mapping

_MODELS = ("model", "huggingface", "triton", "tensorflow", "pytorch", "onnx", "sklearn", "xgboost", "lightgbm", "pmml",
           "paddle")  # fmt: skip
_CONTAINER = "kserve-container"


class ServingComponent(Inline):
    """A component of an InferenceService; the workers of a predictor get its annotations too."""

    def __init__(self) -> None:
        """Take the container of a model, or else the first one, for the one that serves."""
        note = "as KServe makes it of this component, without what its ServingRuntime (an image, and so a framework) "
        super().__init__(f"{note}and KServe's own webhook add", container_at=_MODELS, container=_CONTAINER)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's, the predictor's for its workers, and the component's own."""
        outer = [_predictor(document)] if _is_of_workers(document, holder) else []
        return [mapping(document, "metadata"), *outer, holder]

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
        said = _without_place(document, before, after) if _is_of_workers(document, holder) else []
        return [*said, *super().put_back(document, holder, before, after)]

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
        """Take the fields as they are."""
        super().__init__("as KServe makes it of this runtime, without what an InferenceService adds")

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


def _without_place(document: Fields, before: Fields, after: Fields) -> list[str]:
    """Say which requests of a pod of workers its predictor would have to make: KServe gives them no others."""
    made, was = (one["metadata"]["annotations"] for one in (after, before))
    own = mapping(_predictor(document), "annotations")
    return [
        f'{key}: "{text}" has no place: KServe gives workers the annotations of their predictor, where it is '
        f"{own.get(key) or 'not there'}: have both ask for the same"
        for key, text in made.items()
        if is_request(key) and was.get(key) != text != own.get(key)
    ]
