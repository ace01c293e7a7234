"""The kubelet's API for drivers of Dynamic Resource Allocation, v1, generated from api.proto."""
