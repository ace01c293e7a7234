"""What can fail between this process and the cluster."""


class ClusterError(Exception):
    """The cluster cannot be read or written: one line with the request, the reason and what to do."""


class NoClusterError(ClusterError):
    """No cluster is configured."""


class ConflictError(Exception):
    """Another client has changed, created or deleted the object since it was read."""
