"""The kubelet's API for the health of devices of Dynamic Resource Allocation, v1alpha1, generated from api.proto."""
