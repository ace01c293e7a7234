"""The pods of a Ray cluster, as KubeRay makes them of templates: it starts Ray by a shell, whatever the image runs."""

from collections.abc import Collection, Iterator

from webhook.preview.shapes import Fields, Template, mapping, trimmed

_LINE = ("command", "args")
_SHELL = ["/bin/bash", "-c", "--"]
_START = "ulimit -n 65536; ray start --block"  # without `rayStartParams`
_OVERWRITES = "ray.io/overwrite-container-cmd"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the pod
_VOLUME = "shared-mem"
_CLUSTERS = ("rayClusterSpec", "rayClusterConfig")  # of a RayJob and of a RayService; a RayCluster's is its own spec


class RayTemplate(Template):
    """The template of a group of a cluster, or of what submits a job to it."""

    note = (
        "as KubeRay makes it of this template: where the first container does not start Ray itself, a shell runs its "
        "command line, and then ray start; and with a volume shared-mem at /dev/shm, where it has none there"
    )

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the text for the shell, and shared memory, into the first container."""
        match mapping(holder, "spec").get("containers"):
            case [dict(first), *others]:
                text = _text(document, holder, first)
                line = {"command": _SHELL, "args": [text]} if text else {}
                spec = {**holder["spec"], "containers": [first | line, *others]}
                return {**holder, "spec": self.remade(document, holder, spec)}
        return holder

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the template, with the command line that the shell runs as it was: nothing is added to it."""
        spec = after["spec"]
        match spec.get("containers"):
            case [first, *others]:
                own = holder["spec"]["containers"][0]
                volumes, mounts = _added(document, holder, mapping(holder, "spec"))
                first, spec = trimmed(first, "volumeMounts", mounts), trimmed(spec, "volumes", volumes)
                if _text(document, holder, own):
                    written = own | {key: value for key, value in first.items() if key not in _LINE}
                    first = {key: value for key, value in written.items() if key in _LINE or key in first}
                spec = {**spec, "containers": [first, *others]}
        return super().put_back(document, holder, before, {**after, "spec": spec})

    def remade(self, document: Fields, holder: Fields, spec: Fields) -> Fields:
        """Give the first container shared memory, if it has none."""
        volumes, mounts = _added(document, holder, spec)
        if not mounts:
            return spec
        first, *others = spec["containers"]
        first = {**first, "volumeMounts": [*(first.get("volumeMounts") or ()), *mounts]}
        of_pod = {"volumes": [*(spec.get("volumes") or ()), *volumes]} if volumes else {}
        return {**spec, "containers": [first, *others], **of_pod}


def _added(document: Fields, holder: Fields, spec: Fields) -> tuple[list[Fields], list[Fields]]:
    """Return the volumes that KubeRay adds to a pod of this *spec*, and where its first container mounts them."""
    volumes = spec.get("volumes") or []
    match spec.get("containers"):
        case [dict(first), *_] if isinstance(volumes, list) and not _submits(document, holder):
            mounts = first.get("volumeMounts") or []
            if not isinstance(mounts, list) or any(_has(one, "mountPath", _SHARED_MEMORY) for one in mounts):
                return [], []
            resources = mapping(first, "resources")
            amounts = (mapping(resources, name).get("memory") for name in ("requests", "limits"))
            size = next((one for one in amounts if one is not None), None)
            memory = {"medium": "Memory", **({} if size is None else {"sizeLimit": size})}
            is_there = any(_has(one, "name", _VOLUME) for one in volumes)
            made = [] if is_there else [{"name": _VOLUME, "emptyDir": memory}]
            return made, [{"mountPath": _SHARED_MEMORY, "name": _VOLUME}]
    return [], []


def _has(value: object, field: str, text: str) -> bool:
    return isinstance(value, dict) and value.get(field) == text


def _submits(document: Fields, holder: Fields) -> bool:
    return mapping(document, "spec").get("submitterPodTemplate") is holder


def without_gpus(document: Fields, holder: Fields, pod: Fields, shared: Collection[str]) -> Iterator[str]:
    """Say that Ray knows of no GPU in the group of the template *holder*; *shared* are the containers of its *pod*."""
    spec = mapping(document, "spec")
    for cluster in (spec, *(mapping(spec, name) for name in _CLUSTERS)):
        workers = cluster.get("workerGroupSpecs")
        for group in (mapping(cluster, "headGroupSpec"), *(workers if isinstance(workers, list) else ())):
            if (
                isinstance(group, dict)
                and group.get("template") is holder
                and _counts_none(document, group, pod, shared)
            ):
                yield (
                    "Ray starts without a GPU, since KubeRay counts the limits of the template, and the share is not "
                    'among them yet: write num-gpus: "1" below rayStartParams'
                )


def _counts_none(document: Fields, group: Fields, pod: Fields, shared: Collection[str]) -> bool:
    """Whether KubeRay starts Ray without a GPU although its container, the first one, has a share."""
    template, params = group["template"], mapping(group, "rayStartParams")
    match mapping(template, "spec").get("containers"):
        case [dict(first), *_] if first.get("name") in shared and _text(document, template, first):
            limits = mapping(mapping(pod["spec"]["containers"][0], "resources"), "limits")
            counted = any(_is_gpu(name) for name in (*limits, *mapping(group, "resources")))
            return not counted and "num-gpus" not in params and "GPU" not in str(params.get("resources"))
    return False


def _is_gpu(resource: object) -> bool:
    return str(resource).lower().endswith("gpu")


def _text(document: Fields, holder: Fields, first: Fields) -> str:
    """Return what the shell of the *first* container gets; empty where the container's own command line stays."""
    if _submits(document, holder):
        return "" if first.get("command") else "ray job submit"
    annotations = (mapping(mapping(one, "metadata"), "annotations") for one in (document, holder))
    if any(str(one.get(_OVERWRITES)).lower() == "true" for one in annotations):
        return ""
    own = ""
    for words in filter(None, map(first.get, _LINE)):
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return ""  # a mistake, which is told as it is written
        own += "".join(f" {word} " for word in words)
    return "" if "ray start" in own else f"{own} && {_START}" if own else _START
