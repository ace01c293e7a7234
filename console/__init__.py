"""The view of a cluster: what its API server and its nodes tell the user who asks, by nobody else's rights."""
