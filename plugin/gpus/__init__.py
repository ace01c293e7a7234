"""What GPUs there are: values, and reading them through NVML. Knows neither shares nor the kubelet."""
