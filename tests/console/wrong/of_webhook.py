"""Installations in which a check of the webhook, or of its certificate, fails."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from certs.issuer import CA_LIFETIME, new_ca
from console.doctor.admission import WebhookConfiguration
from console.doctor.installation import Attempt, Installation
from console.objects import Metadata, Pod
from console.seen import Unseen
from console.words import Shown, as_shown
from tests.console.installations import (
    PARTS,
    Wrong,
    ca,
    installation,
    of_invalid_version,
    parsed,
    parts,
    seen,
    waiting,
    webhook,
)
from tests.console.objects import part
from tests.manifests.render import MANIFESTS, render

EXPIRED = "ready\nthe certificate that is served expired at 2026-11-21 06:12 UTC"


def attempt(message: str, status: int = 500) -> Installation:
    return installation(attempt=Attempt(namespace="default", status=status, message=Shown(message)))


def trusting(*bundle: bytes, **changes: Any) -> Installation:
    """One whose CA bundle has these certificates."""
    bundled = b64encode(b"".join(bundle)).decode()
    return installation(webhook=webhook(clientConfig={"caBundle": bundled}), **changes)


def by_cert_manager() -> WebhookConfiguration:
    """The webhook configuration of the overlay for cert-manager."""
    objects = render(MANIFESTS / "overlays" / "cert-manager")
    (made,) = (one for one in objects if one["kind"] == "MutatingWebhookConfiguration")
    return msgspec.structs.replace(webhook(), metadata=msgspec.convert(made["metadata"], Metadata, dec_hook=as_shown))


def without_certs(configuration: WebhookConfiguration | None, **more: Any) -> Installation:
    """One without gpu-share-certs."""
    there = tuple(parsed(part("gpu-0", one), Pod) for one in PARTS if one != "certs")
    return installation(seen(parts=there), webhook=configuration, **more)


def issued(*, days: float, beside: float) -> Installation:
    """One whose certificate is of a CA that ends in so many *days*, and which trusts another CA *beside* it."""
    issuer = new_ca(now=datetime.now(UTC) - CA_LIFETIME + timedelta(days=days))
    served = issuer.issue(("gpu-share-webhook.gpu-share.svc",), now=datetime.now(UTC)).certificate_pem
    return trusting(issuer.pair.certificate_pem, ca(beside), serving_certificate=served)


HIDDEN = Unseen(what="webhook", why="it is forbidden", right="get mutatingwebhookconfigurations")
OF_OURS = ("ValidatingAdmissionPolicy 'gpu-share' with binding 'gpu-share' denied request: no grant",)
OF_OTHERS = (
    'admission webhook "connaisseur-svc.connaisseur.svc" denied the request: Unable to find signed digest',
    'pods "gpu-share-doctor-" is forbidden: error looking up service account default/default: not found',
    'pods "gpu-share-doctor-x" is forbidden: namespace default is being terminated',
)
WRONG: list[Wrong] = [
    (
        "images",
        "failure",
        "ErrImagePull: no such image",
        lambda: parts("plugin", containerStatuses=waiting("ErrImagePull")),
    ),
    ("webhook-runs", "failure", "none of 1 webhook pods", lambda: parts("webhook", phase="Pending")),
    ("webhook-configured", "failure", "there is no Mutating", lambda: installation(webhook=None, has_webhook=False)),
    ("webhook-configured", "failure", "has no caBundle", lambda: installation(webhook=webhook(clientConfig={}))),
    *(
        ("webhook-configured", "failure", "holds no certificate", partial(trusting, bundle))
        for bundle in (b"none", of_invalid_version(ca()))
    ),
    (
        "webhook-answers",
        "failure",
        "x509: unknown",
        lambda: attempt('failed calling webhook "pods.gpu-share.dev": x509: unknown authority', 500),
    ),
    *(("webhook-answers", "failure", said, partial(attempt, said, 403)) for said in OF_OURS),
    *(("webhook-answers", "unknown", said, partial(attempt, said, 403)) for said in OF_OTHERS),
    ("webhook-answers", "failure", 'namespaces "x" not found', lambda: attempt('namespaces "x" not found', 404)),
    ("webhook-answers", "warning", "was admitted in namespace default", lambda: attempt("", 201)),
    ("certificates", "failure", "the CA expires at", lambda: trusting(ca(2))),
    ("certificates", "failure", "the CA expires at", lambda: issued(days=3, beside=365)),
    ("certificates", "failure", "webhook's certificate expired", lambda: installation(serving_certificate=ca(-1))),
    (
        "certificates",
        "failure",
        "gpu-share-webhook-2: the certificate that is served expired at 2026-11-21 06:12 UTC",
        lambda: installation(ready={"gpu-share-webhook-1": "ready", "gpu-share-webhook-2": EXPIRED}),
    ),
    (
        "certificates",
        "failure",
        "webhook's certificate expired",
        lambda: installation(serving_certificate=ca(-1) + ca(300)),  # with that of an intermediate CA behind it
    ),
    *(
        ("certificates", "failure", "holds no certificate", partial(installation, serving_certificate=served))
        for served in (b"", of_invalid_version(ca(30)), of_invalid_version(ca(30)) + ca(365))
    ),
    (
        "renewal",
        "failure",
        "CrashLoopBackOff",
        lambda: parts("certs", containerStatuses=waiting("CrashLoopBackOff")),
    ),
    ("renewal", "not-applicable", "cert-manager does it", lambda: without_certs(by_cert_manager())),
    ("renewal", "unknown", "forbidden", lambda: without_certs(None, unseen={"webhook": HIDDEN})),
]
