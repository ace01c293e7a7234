"""The same decisions without a cluster: pods in files, and what the webhook would do with them."""
