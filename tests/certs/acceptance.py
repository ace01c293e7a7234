"""Whether an API server accepts the serving certificate of a webhook pod."""

from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError


@lru_cache(maxsize=4096)
def accepted(bundle: bytes, certificate: bytes, key: bytes, *, name: str, now: datetime) -> bool:
    """Return whether an API server with *bundle* that calls *name* accepts a pod with this certificate and key."""
    try:
        roots = x509.load_pem_x509_certificates(bundle)
        leaf = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, None)
        PolicyBuilder().store(Store(roots)).time(now).build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    except (ValueError, VerificationError):
        return False
    return private.public_key() == leaf.public_key()
