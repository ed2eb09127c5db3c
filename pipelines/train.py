"""`precis train`: records -> bundle. Thin: the work is in `model.training`, and no part of it needs Beam."""

from typing import Any

from model import files
from model.config import named_network
from model.errors import UsageError
from model.record import TOKENIZER_FOLDER, load_dataset
from model.tokenizer import Tokenizer
from model.training.loop import TrainResult, train_network
from pipelines.flags import read_flags
from pipelines.options import TRAIN


def train(**flags: Any) -> TrainResult:
    """Trains a network on records and writes it as a bundle; goes on where an interrupted run of the same flags stopped.

    Args:
      **flags: the fields of `TrainOptions` and `TrainingConfig`.

    Raises:
      UsageError: flags that cannot be, records that are none.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: at SIGTERM, after the state was saved.
    """
    options, training = read_flags(TRAIN, flags)
    info = load_dataset(options.records)
    tokenizer = Tokenizer.load(files.join(options.records, TOKENIZER_FOLDER))
    limits = {}
    for name in ("max_source_tokens", "max_target_tokens"):
        asked, prepared = getattr(options, name), getattr(info, name)
        if asked > prepared:
            raise UsageError(f"--{name} {asked} is more than the {prepared} the records were cut at; prepare them with --{name} {asked}")
        limits[name] = asked or prepared
    network = named_network(
        options.network,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        pointer=options.pointer,
        tied_output=options.tied_output,
        dropout=options.dropout,
        **limits,
    )
    return train_network(options.records, options.output, network=network, training=training)
