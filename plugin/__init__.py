"""
The node: virtual GPUs for the kubelet, and one MPS daemon per GPU.

`process` and `mps_process` put the rooms together.
"""

import os

# Read when gRPC is imported. By default it ends its threads at each fork and starts them again, also where the fork
# failed for want of processes; where there is none for a thread either, it ends this process, and with it MPS daemons.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# What gRPC writes by itself, of a kubelet that ends for instance, would stand as text between the log's lines of JSON.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
