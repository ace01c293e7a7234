from hypothesis import settings

# How long one example takes says how busy the machine is.
settings.register_profile("gpu-share", deadline=None)
settings.load_profile("gpu-share")
