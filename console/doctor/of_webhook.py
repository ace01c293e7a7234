"""Checks of the installation's own pods, of the webhook and of its certificate."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from console.doctor.admission import CREATED_POLICY
from console.doctor.installation import SUCCEEDED, Installation
from console.doctor.parts import COMPONENTS, is_ready, no_parts, parts, statuses, trouble
from console.doctor.restarts import hints, restarted
from console.doctor.verdict import APPLY, OK, Check, Verdict, fail, not_applicable, not_listed, not_seen, unknown, warn
from console.seen import OUR_PODS
from policies.contract import WEBHOOK_NAMES
from program.certificates import first_certificate, read_certificates

_IMAGE_REASONS: Final = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_OF_OUR_WEBHOOK: Final = tuple(f'admission webhook "{name}" denied the request' for name in WEBHOOK_NAMES)
_OUR_POLICY: Final = f"ValidatingAdmissionPolicy '{CREATED_POLICY}'"  # denies what the webhook was not asked of
# Kubernetes asks all webhooks that change pods before it validates any.
_AFTER_ALL_WEBHOOKS: Final = ("violates PodSecurity", "exceeded quota", "failed quota", "ValidatingAdmissionPolicy '")
_IS_IT_EXEMPT: Final = "is the namespace exempt, or in mode: warn? Try another one, by -n"
_NOT_FOUND: Final = 404  # of HTTP
_CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"  # the annotation of manifests/overlays/cert-manager
_SOON: Final = timedelta(days=7)
_PAGE: Final = "troubleshooting.md"


def images(on: Installation) -> Verdict:
    """See that nodes have the image."""
    found = []
    for pod in parts(on.seen, *COMPONENTS):
        for status in statuses(pod):
            waiting = status.state.waiting
            if waiting is not None and waiting.reason in _IMAGE_REASONS:
                found.append(f"{pod.metadata.name}: {waiting.reason}: {waiting.message}")
    return fail(*found, hint="push the image, and name it in manifests/common/kustomization.yaml")


def webhook_runs(on: Installation) -> Verdict:
    """See that a webhook pod is ready."""
    if missing := not_listed(on, OUR_PODS):
        return missing
    pods = parts(on.seen, "webhook")
    ready = [one for one in pods if is_ready(one)]
    told = () if ready else (f"none of {len(pods)} webhook pods is ready",)
    late = [f"{one.metadata.name} is not ready" for one in pods if not is_ready(one)]
    again = restarted(pods, on.now)
    found = [*told, *(() if told else late), *(one.sentence for one in again)]
    look = "kubectl -n gpu-share describe pods -l app.kubernetes.io/component=webhook" if pods else APPLY
    return (fail if told else warn)(*found, hint=hints(*([look] if told or late else []), of=again))


def configured(on: Installation) -> Verdict:
    """See that the API server calls the webhook, and by which CA it trusts it."""
    if missing := not_seen(on, "webhook"):
        return missing
    if on.webhook is None:
        return fail("there is no MutatingWebhookConfiguration gpu-share", hint=APPLY)
    names = {str(one.name) for one in on.webhook.webhooks}
    if absent := [f"the webhook {name} is missing" for name in WEBHOOK_NAMES if name not in names]:
        return fail(*absent, hint=APPLY)
    found = []
    bundles = {one.client_config.ca_bundle for one in on.webhook.webhooks if one.name in WEBHOOK_NAMES}
    if "" in bundles:
        found.append("a webhook has no caBundle")
    elif len(bundles) > 1:
        found.append("webhooks have different caBundles")
    elif bundles and not read_certificates(_pem(next(iter(bundles)))):
        found.append("the caBundle holds no certificate")
    return fail(*found, hint=_renewing(on))


def answers(on: Installation) -> Verdict:
    """See that the API server calls the webhook for a pod that asks for a share: the whole way."""
    if missing := not_seen(on, "attempt"):
        return missing
    if on.attempt is None:
        return unknown("nothing was tried")
    if any(text in on.attempt.message for text in _OF_OUR_WEBHOOK):
        return OK
    said = on.attempt.message or f"HTTP {on.attempt.status}"
    if on.attempt.status in SUCCEEDED:
        return warn(
            f"a pod with an invalid share was admitted in namespace {on.attempt.namespace}",
            hint=_IS_IT_EXEMPT,
        )
    if on.attempt.status == _NOT_FOUND:
        return fail(said, hint="name a namespace that there is, by -n")
    if not any(name in on.attempt.message for name in (*WEBHOOK_NAMES, _OUR_POLICY)):
        if any(text in on.attempt.message for text in _AFTER_ALL_WEBHOOKS):
            passed = f"the webhook let a pod with an invalid share pass in namespace {on.attempt.namespace}; then"
            return warn(f"{passed}: {said}", hint=_IS_IT_EXEMPT)
        hint = "it was denied for another reason before, or by others: try a namespace where pods can run, by -n"
        return Verdict(status="unknown", found=(said,), hint=hint)
    return fail(said, hint="read the end of the message: it says why the webhook did not answer")


def certificates(on: Installation) -> Verdict:
    """See that neither the CA nor the certificate expires, and that every webhook pod serves a good one."""
    if missing := not_seen(on, "webhook"):
        return missing
    bundles = [one.client_config.ca_bundle for one in on.webhook.webhooks] if on.webhook else []
    pem = on.serving_certificate or b""
    trusted = _trusting(read_certificates(_pem(bundles[0] if bundles else "")), pem)
    known = [("the CA", max(one.not_valid_after_utc for one in trusted))] if trusted else []
    found = [*_late(known, on), *on.troubles(of_certificates=True)]
    if late := not_seen(on, "serving_certificate"):
        return fail(*found, hint=_renewing(on)) if found else late
    served = first_certificate(pem)
    if served is None:
        found.append("the Secret gpu-share-webhook-tls holds no certificate")
    else:
        found += _late([("the webhook's certificate", served.not_valid_after_utc)], on)
    return fail(*found, hint=_renewing(on)) if found else unknown(on.unheard) if on.unheard else OK


def renewal(on: Installation) -> Verdict:
    """See that something renews the certificates."""
    if missing := not_listed(on, OUR_PODS):
        return missing
    pods = parts(on.seen, "certs")
    if not pods:
        if missing := not_seen(on, "webhook"):  # which says where cert-manager does
            return missing
        if on.webhook and _CERT_MANAGER in on.webhook.metadata.annotations:
            return not_applicable("cert-manager does it: kubectl -n gpu-share describe certificates")
        return warn("no pod of gpu-share-certs runs", hint=f"unless something else renews them, {APPLY}")
    late = [f"{one.metadata.name}: {trouble(one)}" for one in pods if not is_ready(one)]
    again = restarted(pods, on.now)
    logs = "kubectl -n gpu-share logs -l app.kubernetes.io/component=certs --previous"
    judge = fail if len(late) == len(pods) else warn
    return judge(*late, *(one.sentence for one in again), hint=hints(*([] if again else [logs]), of=again))


def _renewing(on: Installation) -> str:
    """Say how to have certificates made now, by whatever makes them here."""
    if parts(on.seen, "certs") or not_listed(on, OUR_PODS):
        return (
            "kubectl -n gpu-share rollout restart deployment/gpu-share-certs; its log says why none was renewed. "
            "What is renewed reaches the webhook's pods within a minute and a half"
        )
    return f"kubectl -n gpu-share describe certificates: cert-manager says why; without cert-manager, {APPLY}"


def _late(known: list[tuple[str, datetime]], on: Installation) -> list[str]:
    return [
        f"{what} {'expired' if end <= on.now else 'expires'} at {end:%Y-%m-%d %H:%M} UTC"
        for what, end in known
        if end <= on.now + _SOON
    ]


def _trusting(bundle: Sequence[x509.Certificate], pem: bytes) -> Sequence[x509.Certificate]:
    """Keep the CAs by which what is served is trusted, itself or by the CAs behind it; all if none is known to be."""
    chain: list[x509.Certificate] = []
    for one in read_certificates(pem):
        if chain and not _has_issued(one, chain[-1]):
            break
        chain.append(one)
    return [ca for ca in bundle if any(_has_issued(ca, one) for one in chain)] or bundle


def _has_issued(issuer: x509.Certificate, one: x509.Certificate) -> bool:
    try:
        one.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _pem(encoded: str) -> bytes:
    try:
        return b64decode(encoded)
    except (Base64Error, ValueError):
        return b""


WEBHOOK: Final = (
    Check(
        name="images",
        says="nodes have the image",
        page="install.md#1-the-image",
        judge=images,
        absent=no_parts,
        rests_on=(OUR_PODS,),
    ),
    Check(
        name="webhook-runs", says="the webhook runs", page=f"{_PAGE}#the-webhook-cannot-be-called", judge=webhook_runs
    ),
    Check(name="webhook-configured", says="the API server knows it", page=f"{_PAGE}#certificates", judge=configured),
    Check(
        name="webhook-answers",
        says="it answers the API server",
        page=f"{_PAGE}#the-webhook-cannot-be-called",
        judge=answers,
    ),
    Check(
        name="certificates",
        says="no certificate expires within a week",
        page=f"{_PAGE}#certificates",
        judge=certificates,
    ),
    Check(name="renewal", says="certificates are renewed", page=f"{_PAGE}#certificates", judge=renewal),
)
