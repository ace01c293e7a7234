"""What containers take of the GPUs now: NVML's processes, and which container each of them is in."""
