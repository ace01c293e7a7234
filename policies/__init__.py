"""
The rules: what a share is, who may have one, what is granted.

Pure: values in, values out; `reading.directory` alone touches files.
"""
