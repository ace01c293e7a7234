"""
The node: virtual GPUs for the kubelet, and one MPS daemon per GPU.

`process` and `mps_process` put the rooms together.
"""
