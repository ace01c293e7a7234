"""`gpu-share console`: a page of the cluster on the user's own machine, by the user's own rights."""
