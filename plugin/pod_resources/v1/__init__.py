"""The kubelet's PodResources API, generated from api.proto."""
