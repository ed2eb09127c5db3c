"""The number of pieces and devices does not change a training."""

import numpy as np
import pytest
from support.command_line import run_reference
from support.small_training import (
    ONE_BUCKET,
    SIX_ROWS,
    losses,
    network_config,
    reports,
    run_to_end,
)

from precis.model.bundle.network_bundle import load_bundle


@pytest.mark.slow
def test_two_devices_and_three_pieces_change_nothing(records_folder, tmp_path):
    """Without dropout, in batches of six rows."""
    one, two, dropout = (tmp_path / name for name in ("one", "two", "dropout"))
    network = network_config(dropout=0.0, **ONE_BUCKET)
    run_to_end(records_folder, one, network=network, batch_tokens=SIX_ROWS)
    run_reference("two_devices", records_folder, tmp_path)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)
    tokens = [[row["tokens"] for row in reports(output)] for output in (one, two)]
    assert tokens[0] == tokens[1]
    # With dropout, loss scaling and incomplete batches:
    assert np.isfinite(losses(dropout, 3)).all()
    assert load_bundle(str(dropout)).network.config == network_config()
