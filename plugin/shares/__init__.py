"""What a container with a share receives, as values. Knows no kubelet, and not by which of its APIs a share came."""
