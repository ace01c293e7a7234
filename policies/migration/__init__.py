"""From other systems to gpu-share: what their configurations and pods become. Values in, values out."""
