"""`gpu-share doctor`: whether gpu-share can be installed, and whether it works, a line for each check."""
