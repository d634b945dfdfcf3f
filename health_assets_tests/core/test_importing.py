"""The collector of garbage rests while much is imported, and no longer."""

import gc

import pytest

from health_assets.core.importing import without_collections


def test_the_collector_rests_in_the_block_and_works_after_it_whatever_happens() -> None:
    frozen = gc.get_freeze_count()
    with pytest.raises(ImportError), without_collections():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen


def test_a_collector_that_rested_before_goes_on_resting() -> None:
    gc.disable()
    try:
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
