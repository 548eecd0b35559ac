"""Collections while a server runs."""

import gc

from caveat.serve.heap import settled_heap
from tests.serve.running import serving


def test_a_server_leaves_what_it_has_loaded_out_of_collections(served_models):
    assert gc.get_freeze_count() == 0
    with serving({"net": served_models["net"]}):
        assert gc.get_freeze_count() > 10_000
    assert gc.get_freeze_count() == 0


def test_what_others_have_frozen_stays():
    gc.freeze()
    try:
        with settled_heap():
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
