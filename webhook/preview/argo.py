"""The pods of Argo Workflows, as its controller makes them of templates."""

from policies.contract import DEFAULT_CONTAINER_ANNOTATION
from webhook.preview.object_fields import ArgoTemplateFields, Workflow
from webhook.preview.shapes import Fields, mapping, merged, put_metadata


class ArgoTemplate:
    """A template of an Argo workflow: the container `main`, beside which the controller puts two of its own."""

    note = "as Argo makes it of this template, without its containers init and wait"
    reads = (Workflow, ArgoTemplateFields)
    _CONTAINERS = ("container", "script")
    _SPEC = ("volumes", "nodeSelector", "tolerations", "schedulerName", "initContainers")

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The workflow's `podMetadata`, and the template's."""
        return [mapping(self._workflow(document), "podMetadata"), mapping(holder, "metadata")]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the template's containers and the workflow's settings into a pod."""
        containers = self._containers(holder)
        if not containers:
            return None
        metadata = merged(self.annotations(document, holder))
        metadata["annotations"].setdefault(DEFAULT_CONTAINER_ANNOTATION, containers[0]["name"])
        workflow = self._workflow(document)
        spec = {name: workflow[name] for name in self._SPEC if workflow.get(name) is not None}
        spec |= {name: holder[name] for name in self._SPEC if holder.get(name) is not None}
        volumes = [*(workflow.get("volumes") or ()), *(holder.get("volumes") or ())]
        spec |= {"volumes": volumes} if volumes else {}
        return {"metadata": metadata, "spec": {**spec, "containers": [*containers, *(holder.get("sidecars") or ())]}}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write containers, volumes and placement; a template has no other fields of a pod."""
        count = len(self._containers(holder))
        containers, sidecars = after["spec"]["containers"][:count], after["spec"]["containers"][count:]
        for name in self._CONTAINERS:
            if isinstance(holder.get(name), dict):
                named = "name" in holder[name]
                holder[name] = {key: value for key, value in containers[0].items() if named or key != "name"}
        if isinstance(holder.get("containerSet"), dict):
            holder["containerSet"]["containers"] = containers
        if sidecars:
            holder["sidecars"] = sidecars
        unplaced = []
        for name, value in after["spec"].items():
            if name == "containers" or before["spec"].get(name) == value:
                continue
            if name in self._SPEC:
                own = [one for one in value if one not in (self._workflow(document).get(name) or ())]
                holder[name] = own if isinstance(value, list) else value
            else:
                unplaced.append(name)
        put_metadata(holder.setdefault("metadata", {}), before, after)
        return unplaced

    def _containers(self, holder: Fields) -> list[Fields]:
        for name in self._CONTAINERS:
            if isinstance(holder.get(name), dict):
                return [{"name": "main", **holder[name]}]
        return mapping(holder, "containerSet").get("containers") or []

    def _workflow(self, document: Fields) -> Fields:
        spec = mapping(document, "spec")
        return mapping(spec, "workflowSpec") or spec
