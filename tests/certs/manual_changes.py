"""What people do to Secrets and bundle, by name."""

from collections.abc import Callable
from datetime import timedelta

from certs.issuer import Pair, new_authority
from policies.contract import AUTHORITY_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION
from tests.certs.simulated_cluster import NAME, World, configuration

GARBAGE = b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"


def files(pair: Pair) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


def _change(secret: str, **entries: Callable[[World], bytes] | bytes) -> Callable[[World], None]:
    def change(world: World) -> None:
        made = {
            name.replace("_", "."): made if isinstance(made, bytes) else made(world) for name, made in entries.items()
        }
        world.put_secret(secret, world.secret(secret) | made)

    return change


def _foreign_certificate(world: World) -> bytes:
    return new_authority(now=world.now).pair.certificate_pem


def _own_pair(world: World) -> None:
    """Bring a serving certificate and its authority along, as someone does who trusts no robot."""
    own = new_authority(now=world.now)
    world.bundle += own.pair.certificate_pem
    world.put_secret(SERVING_SECRET, files(own.issue([NAME], now=world.now)))


def _own_serving(name: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.put_secret(SERVING_SECRET, files(new_authority(now=world.now).issue([name], now=world.now)))

    return change


def _serving_before(world: World) -> None:
    if world.servings.all:
        certificate, key = world.servings.all[0][1]
        world.put_secret(SERVING_SECRET, {"tls.crt": certificate, "tls.key": key})


def _other_authority(world: World) -> None:
    pair = new_authority(now=world.now).pair
    world.put_secret(AUTHORITY_SECRET, {"ca.crt": pair.certificate_pem, "ca.key": pair.key_pem})


def _without_newest(world: World) -> None:
    world.bundle = world.bundle.replace(world.secret(AUTHORITY_SECRET).get("ca.crt", b"-"), b"")


def _marks(value: Callable[[World, str], str]) -> Callable[[World], None]:
    def change(world: World) -> None:
        marks = {name: value(world, text) for name, text in world.marks.items()}
        world.put_secret(AUTHORITY_SECRET, world.secret(AUTHORITY_SECRET), marks=marks)

    return change


def _in_the_future(world: World, text: str) -> str:
    return f"{text.partition(' ')[0]} {(world.now + timedelta(days=900)).isoformat()}"


HANDS: dict[str, Callable[[World], None]] = {
    "the serving Secret is deleted": lambda world: world.api.put(SERVING_SECRET, None),
    "the serving Secret is emptied": _change(SERVING_SECRET, tls_crt=b"", tls_key=b""),
    "the serving certificate is garbage": _change(SERVING_SECRET, tls_crt=GARBAGE),
    "the serving key is of another pair": _change(
        SERVING_SECRET, tls_key=lambda w: new_authority(now=w.now).pair.key_pem
    ),
    "the serving certificate is of a strange authority": _own_serving(NAME),
    "the serving certificate is for another name": _own_serving("other.gpu-share.svc"),
    "the serving certificate and its authority are someone's own": _own_pair,
    "the serving certificate is the first that there was": _serving_before,
    "the authority Secret is deleted": lambda world: world.api.put(AUTHORITY_SECRET, None),
    "the authority Secret is emptied": lambda world: world.put_secret(AUTHORITY_SECRET, {}),
    "the authority's certificate is garbage": _change(AUTHORITY_SECRET, ca_crt=GARBAGE),
    "the authority's key is garbage": _change(AUTHORITY_SECRET, ca_key=b"\xff"),
    "the authority's key is of another pair": _change(
        AUTHORITY_SECRET, ca_key=lambda w: new_authority(now=w.now).pair.key_pem
    ),
    "the old authority is garbage": _change(AUTHORITY_SECRET, old_crt=GARBAGE, old_key=GARBAGE),
    "the authority is another": _other_authority,
    "the recorded times are gone": _marks(lambda _, __: ""),
    "the recorded times are of the future": _marks(_in_the_future),
    "the recorded times are garbage": _marks(lambda _, text: f"{text.partition(' ')[0]} yesterday"),
    "the configuration is made anew": lambda world: world.api.put(WEBHOOK_CONFIGURATION, configuration()),
    "the bundle is garbage": lambda world: setattr(world, "bundle", b"\xff" + GARBAGE),
    "the bundle has garbage at its end": lambda world: setattr(world, "bundle", world.bundle + GARBAGE),
    "the bundle has a strange authority": lambda world: setattr(
        world, "bundle", _foreign_certificate(world) + world.bundle
    ),
    "the bundle is a strange authority": lambda world: setattr(world, "bundle", _foreign_certificate(world)),
    "the bundle lost the newest authority": _without_newest,
}
