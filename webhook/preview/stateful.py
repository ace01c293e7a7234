"""The pods of a StatefulSet, whose claims become volumes of theirs."""

from webhook.preview.object_fields import StatefulSet, TemplateFields
from webhook.preview.shapes import Fields, Template, mapping, without


class StatefulTemplate(Template):
    """The template of a StatefulSet, with a volume for each of its claims, as the first of its pods has it."""

    reads = (StatefulSet, TemplateFields)

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the claims into the template, in place of volumes of their names."""
        spec, volumes = mapping(holder, "spec"), _of_claims(document)
        own = spec.get("volumes") or []
        if not volumes or not spec or not isinstance(own, list):
            return holder
        return {**holder, "spec": {**spec, "volumes": [*(one for one in own if not _is_named(one, volumes)), *volumes]}}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the template without the claims, and with the volumes that they replace."""
        volumes, spec = _of_claims(document), dict(after["spec"])
        if volumes:
            own = mapping(holder, "spec").get("volumes") or ()
            left = [
                *(one for one in own if _is_named(one, volumes)),
                *without(spec.pop("volumes", None) or (), volumes),
            ]
            spec |= {"volumes": left} if left else {}
        return super().put_back(document, holder, before, {**after, "spec": spec})


def _of_claims(document: Fields) -> list[Fields]:
    """Return the volumes that the first pod gets of the claims, one for each name."""
    name = mapping(document, "metadata").get("name") or "set"
    claims = mapping(document, "spec").get("volumeClaimTemplates") or ()
    names = dict.fromkeys(mapping(one, "metadata").get("name") or "" for one in claims)
    return [{"name": one, "persistentVolumeClaim": {"claimName": f"{one}-{name}-0"}} for one in names if one]


def _is_named(volume: object, others: list[Fields]) -> bool:
    return isinstance(volume, dict) and any(volume.get("name") == one["name"] for one in others)
