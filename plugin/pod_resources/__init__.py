"""Who holds what, as the kubelet says it on its PodResources socket, whichever way it was allocated."""
