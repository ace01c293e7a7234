"""GPUs, an NVML, a kubelet and a demo that need no hardware. Only the processes and tests know that they exist."""
