"""Property tests: the same examples each time, and no clock (the machine is shared)."""

from hypothesis import settings

settings.register_profile("caveat", deadline=None, derandomize=True)
settings.load_profile("caveat")
