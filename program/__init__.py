"""
What every program of gpu-share has: options from flags and the environment, one-line errors, exit codes, a log.

It stands below all rooms and knows none of them. No rule about shares, no Kubernetes, no GPU belongs here.
"""
