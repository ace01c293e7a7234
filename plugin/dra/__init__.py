"""The other door to the kubelet: Dynamic Resource Allocation, by which the scheduler chooses the GPU of each share."""
