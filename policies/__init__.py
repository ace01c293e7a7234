"""
The rules: what a share is, who may have one, what is granted.

Values in, values out. Nothing here knows HTTP, gRPC or NVML, and only `store` reads files.
"""
