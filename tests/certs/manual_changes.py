"""What people may do to the Secrets and the CA bundle, by name."""

from collections.abc import Callable
from datetime import timedelta

from certs.issuer import new_ca
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION
from tests.certs.rotation_states import files
from tests.certs.simulated_cluster import NAME, SimulatedCluster, configuration

GARBAGE = b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"


def _change(secret: str, **entries: Callable[[SimulatedCluster], bytes] | bytes) -> Callable[[SimulatedCluster], None]:
    def change(cluster: SimulatedCluster) -> None:
        made = {
            name.replace("_", "."): made if isinstance(made, bytes) else made(cluster) for name, made in entries.items()
        }
        cluster.put_secret(secret, cluster.secret(secret) | made)

    return change


def _unknown_ca(cluster: SimulatedCluster) -> bytes:
    return new_ca(now=cluster.now).pair.certificate_pem


def _replace_serving_and_ca(cluster: SimulatedCluster) -> None:
    """Replace the serving certificate by one of another CA, and add that CA to the CA bundle."""
    own = new_ca(now=cluster.now)
    cluster.bundle += own.pair.certificate_pem
    cluster.put_secret(SERVING_SECRET, files(own.issue([NAME], now=cluster.now)))


def _serving_of_unknown_ca(name: str) -> Callable[[SimulatedCluster], None]:
    def change(cluster: SimulatedCluster) -> None:
        cluster.put_secret(SERVING_SECRET, files(new_ca(now=cluster.now).issue([name], now=cluster.now)))

    return change


def _first_serving_again(cluster: SimulatedCluster) -> None:
    if cluster.servings.all:
        certificate, key = cluster.servings.all[0][1]
        cluster.put_secret(SERVING_SECRET, {"tls.crt": certificate, "tls.key": key})


def _replace_ca(cluster: SimulatedCluster) -> None:
    pair = new_ca(now=cluster.now).pair
    cluster.put_secret(CA_SECRET, {"ca.crt": pair.certificate_pem, "ca.key": pair.key_pem})


def _remove_newest_from_bundle(cluster: SimulatedCluster) -> None:
    cluster.bundle = cluster.bundle.replace(cluster.secret(CA_SECRET).get("ca.crt", b"-"), b"")


def _change_annotations(value: Callable[[SimulatedCluster, str], str]) -> Callable[[SimulatedCluster], None]:
    def change(cluster: SimulatedCluster) -> None:
        annotations = {name: value(cluster, text) for name, text in cluster.annotations.items()}
        cluster.put_secret(CA_SECRET, cluster.secret(CA_SECRET), annotations=annotations)

    return change


def _in_the_future(cluster: SimulatedCluster, text: str) -> str:
    return f"{text.partition(' ')[0]} {(cluster.now + timedelta(days=900)).isoformat()}"


MANUAL_CHANGES: dict[str, Callable[[SimulatedCluster], None]] = {
    "the serving Secret is deleted": lambda cluster: cluster.api.put(SERVING_SECRET, None),
    "the serving Secret is emptied": _change(SERVING_SECRET, tls_crt=b"", tls_key=b""),
    "the serving certificate is garbage": _change(SERVING_SECRET, tls_crt=GARBAGE),
    "the serving key is from another pair": _change(SERVING_SECRET, tls_key=lambda w: new_ca(now=w.now).pair.key_pem),
    "the serving certificate is from an unknown CA": _serving_of_unknown_ca(NAME),
    "the serving certificate is for another name": _serving_of_unknown_ca("other.gpu-share.svc"),
    "the serving certificate and its CA are replaced": _replace_serving_and_ca,
    "the serving certificate is the first one again": _first_serving_again,
    "the CA Secret is deleted": lambda cluster: cluster.api.put(CA_SECRET, None),
    "the CA Secret is emptied": lambda cluster: cluster.put_secret(CA_SECRET, {}),
    "the CA's certificate is garbage": _change(CA_SECRET, ca_crt=GARBAGE),
    "the CA's key is garbage": _change(CA_SECRET, ca_key=b"\xff"),
    "the CA's key is from another pair": _change(CA_SECRET, ca_key=lambda w: new_ca(now=w.now).pair.key_pem),
    "the old CA is garbage": _change(CA_SECRET, old_crt=GARBAGE, old_key=GARBAGE),
    "the CA is replaced by another": _replace_ca,
    "the recorded times are gone": _change_annotations(lambda _, __: ""),
    "the recorded times are in the future": _change_annotations(_in_the_future),
    "the recorded times are garbage": _change_annotations(lambda _, text: f"{text.partition(' ')[0]} yesterday"),
    "the webhook configuration is created again": lambda cluster: cluster.api.put(
        WEBHOOK_CONFIGURATION, configuration()
    ),
    "a webhook without a CA bundle is added": lambda cluster: cluster.put_bundles(cluster.bundle),
    "one webhook trusts an unknown CA too": lambda cluster: cluster.put_bundles(
        cluster.bundle + _unknown_ca(cluster), cluster.bundle
    ),
    "one webhook's CA bundle has garbage at its end": lambda cluster: cluster.put_bundles(
        cluster.bundle, cluster.bundle + GARBAGE
    ),
    "one webhook lacks the newest CA": lambda cluster: cluster.put_bundles(
        cluster.bundle, cluster.bundle.replace(cluster.secret(CA_SECRET).get("ca.crt", b"-"), b"")
    ),
    "the CA bundle is garbage": lambda cluster: setattr(cluster, "bundle", b"\xff" + GARBAGE),
    "the CA bundle has garbage at its end": lambda cluster: setattr(cluster, "bundle", cluster.bundle + GARBAGE),
    "the CA bundle holds an unknown CA too": lambda cluster: setattr(
        cluster, "bundle", _unknown_ca(cluster) + cluster.bundle
    ),
    "the CA bundle holds only an unknown CA": lambda cluster: setattr(cluster, "bundle", _unknown_ca(cluster)),
    "the CA bundle lacks the newest CA": _remove_newest_from_bundle,
}
