"""
The rules: what a share is, who may have one, what is granted.

Pure: values in, values out; `reading.store` alone touches files.
"""
