"""The version is one that tools can read, and the one that is installed."""

from importlib.metadata import version

from packaging.version import Version

import caveat
from caveat._version import __version__


def test_the_version_is_readable_and_offered():
    assert str(Version(__version__)) == __version__ == caveat.__version__


def test_the_version_is_that_of_the_installed_package():
    assert version("caveat") == __version__
