"""How a client of the API server checks its certificate: as kubectl does, whatever the version of Python."""

import ssl


def as_kubectl(tls: ssl.SSLContext) -> ssl.SSLContext:
    """
    Make *tls* accept the certificates that kubectl accepts; chain, name and expiry are checked as before.

    What is left: OpenSSL takes a certificate in the bundle for a CA that says so by its key usage alone, which Go does
    not; and it is stricter with short keys and with what a key may be used for.
    """
    # From 3.13 on Python is strict by default and wants key identifiers, which the CAs of many clusters lack, those of
    # many of EKS among them (kubernetes-client/python#2394).
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # And before 3.13 it trusts no CA in the kubeconfig that another one vouches for, nor the server's own certificate.
    tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Python by itself takes a common name for a host; urllib3 does not, and neither does Go.
    tls.hostname_checks_common_name = False
    return tls


def can_be_asked_for(name: str | None) -> bool:
    """Whether TLS can ask for a server of this *name*, or address; without one it asks for none."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except (ValueError, TypeError, ssl.SSLError):  # a label or name that is empty or too long; half a character; a null
        return False
    return True
