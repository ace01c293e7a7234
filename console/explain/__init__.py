"""`gpu-share explain`: all that led to a pod as it is."""
