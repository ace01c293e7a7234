"""The pods of a Volcano Job, as its controller makes them of the templates of its tasks."""

from typing import Any

from webhook.preview.object_fields import TemplateFields, VolcanoJob
from webhook.preview.shapes import KUBERNETES_SCHEDULER, Fields, Template, mapping, trimmed


class VolcanoTask(Template):
    """The template of a task, with the scheduler and the volumes of its Job."""

    note = "as Volcano makes it of this template, with the schedulerName and the volumes of its Job"
    reads = (VolcanoJob, TemplateFields)

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put what the Job says for all its tasks into the template."""
        job, spec = mapping(document, "spec"), mapping(holder, "spec")
        if not spec:
            return holder
        added = {"schedulerName": job["schedulerName"]} if job.get("schedulerName") else {}
        spec = {**spec, **(added if not spec.get("schedulerName") else {})}
        volumes, mounts = _of_job(document)
        if volumes and isinstance(spec.get("volumes") or [], list) and isinstance(spec.get("containers"), list):
            spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
            spec["containers"] = [_mounting(one, mounts) for one in spec["containers"]]
        return {**holder, "spec": spec}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the template, without what comes of the Job."""
        job, own, spec = mapping(document, "spec"), mapping(holder, "spec"), dict(after["spec"])
        volumes, mounts = _of_job(document)
        if volumes:
            spec["containers"] = [trimmed(one, "volumeMounts", mounts) for one in spec["containers"]]
            spec = trimmed(spec, "volumes", volumes)
        if job.get("schedulerName") and not own.get("schedulerName"):
            if spec.get("schedulerName") == job["schedulerName"]:
                del spec["schedulerName"]
            else:
                spec.setdefault("schedulerName", KUBERNETES_SCHEDULER)  # without one it would get the Job's
        return super().put_back(document, holder, before, {**after, "spec": spec})


def _of_job(document: Fields) -> tuple[list[Fields], list[Fields]]:
    """Return the volumes that each pod of a Job gets, and where each of its containers mounts them."""
    name = mapping(document, "metadata").get("name") or "job"
    volumes, mounts, claims = [], [], set()
    for index, one in enumerate(mapping(document, "spec").get("volumes") or ()):
        claim = one.get("volumeClaimName") or f"{name}-volume-{index}"  # Volcano names it by chance
        if claim in claims:
            continue
        claims.add(claim)
        volumes.append({"name": f"{name}-{index}", "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"mountPath": one.get("mountPath"), "name": f"{name}-{index}"})
    return volumes, mounts


def _mounting(container: Any, mounts: list[Fields]) -> Any:
    held = container.get("volumeMounts") or [] if isinstance(container, dict) else None
    # Each has mounts of its own: YAML writes what is the same object as an alias.
    own = [dict(one) for one in mounts]
    return {**container, "volumeMounts": [*held, *own]} if isinstance(held, list) else container
