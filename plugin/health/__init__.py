"""When a GPU is healthy again: pure rules, a thread that reads NVML, and a thread that publishes what follows."""
