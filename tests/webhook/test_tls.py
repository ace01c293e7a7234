"""The certificate in force, where files are what no test can make of a whole server's."""

import os
import resource
from pathlib import Path

from certs.issuer import issue_to_directory
from webhook.tls import ServingCertificate


def test_a_pair_that_could_not_be_read_for_want_of_descriptors_is_read_again(tmp_path: Path) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue_to_directory(tmp_path, dns_names=("localhost",))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(next_one := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, limits[1]))
    try:
        assert certificate.newest() is before
        assert "too many open files" in str(certificate.newest_error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert certificate.newest() is not before
    assert certificate.newest_error is None
