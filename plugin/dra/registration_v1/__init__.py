"""The kubelet's API for the registration of plugins, v1, generated from api.proto."""
