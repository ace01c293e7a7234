"""The kubelet's device plugin API: advertise vGPUs, and allocate them. Nothing below may import it."""
