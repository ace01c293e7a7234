"""`gpu-share top`: GPUs as bars cut into tenants, and pods with their shares."""
