"""The pods of a Ray cluster, as KubeRay makes them of templates: it starts Ray by a shell, whatever the image runs."""

from webhook.preview.shapes import Fields, Template, mapping

_LINE = ("command", "args")
_SHELL = ["/bin/bash", "-c", "--"]
_START = "ulimit -n 65536; ray start --block"  # without `rayStartParams`
_OVERWRITES = "ray.io/overwrite-container-cmd"


class RayTemplate(Template):
    """The template of a group of a cluster, or of what submits a job to it."""

    note = (
        "as KubeRay makes it of this template: where the first container does not start Ray itself, a shell runs its "
        "command line, and then ray start"
    )

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the text for the shell into the first container."""
        match mapping(holder, "spec").get("containers"):
            case [dict(first), *others]:
                text = _text(document, holder, first)
                line = {"command": _SHELL, "args": [text]} if text else {}
                return {**holder, "spec": {**holder["spec"], "containers": [first | line, *others]}}
        return holder

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the template, with the command line that the shell runs as it was: nothing is added to it."""
        match after["spec"].get("containers"):
            case [first, *others]:
                own = holder["spec"]["containers"][0]
                if _text(document, holder, own):
                    written = own | {key: value for key, value in first.items() if key not in _LINE}
                    first = {key: value for key, value in written.items() if key in _LINE or key in first}
                after = {**after, "spec": {**after["spec"], "containers": [first, *others]}}
        return super().put_back(document, holder, before, after)


def _text(document: Fields, holder: Fields, first: Fields) -> str:
    """Return what the shell of the *first* container gets; empty where the container's own command line stays."""
    if mapping(document, "spec").get("submitterPodTemplate") is holder:
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
