"""The version, read by the build and by ``caveat --version``."""

__version__ = "0.1.0"
