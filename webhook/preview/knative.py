"""The pods of Knative: of pod templates."""

from webhook.preview.shapes import Fields, Template, mapping

_CONTAINER = "user-container"


class KnativeTemplate(Template):
    """The template of a Service or a Configuration."""

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Call a container as Knative does if it is the only one and has no name."""
        match mapping(holder, "spec").get("containers"):
            case [dict(only)]:
                only.setdefault("name", _CONTAINER)
        return super().build(document, holder)
