"""The guard for optional packages."""

import math
import sys

import pytest

from caveat._optional import require
from caveat.errors import MissingExtraError


def test_what_is_there_is_imported():
    assert require("math", extra="plot") is math


def test_what_is_absent_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(
        MissingExtraError, match=r"'gymnasium'.*\n.*caveat\[rl\]"
    ) as got:
        require("gymnasium", extra="rl")
    assert isinstance(got.value, ImportError)
