"""The options of `precis train`, `train-extractor` and `train-keyphrases`."""

import dataclasses

from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.model.network.architectures import ARCHITECTURES, LAYOUTS, SIZES
from precis.model.network.config import ATTENTIONS, CELLS
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.options.output import check_output
from precis.pipelines.options.recipes import RECIPES


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Records"""

    records: str = required(
        "folder that `precis prepare` wrote; to train on several tasks, some with "
        "commas between them",
        metavar="DIR[,DIR]",
        is_common=True,
        takes_list=True,
    )
    output: str = required(
        "folder for the bundle, and for checkpoints and logs in training/ below it",
        metavar="DIR",
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_output(self.output)

    @property
    def folders(self) -> tuple[str, ...]:
        """The names in `records`, in order."""
        return tuple(name.strip() for name in self.records.split(",") if name.strip())


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledRecordsOptions:
    """Records"""

    records: str = required(
        "folder that `precis prepare --oracle_sentences 5` wrote",
        metavar="DIR",
        is_common=True,
    )
    output: str = required(
        "folder for the bundle, and for checkpoints and logs in training/ below it",
        metavar="DIR",
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_output(self.output)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Network"""

    recipe: str = flag(
        "",
        "named settings, of which any flag given beside it replaces one; "
        "docs/NETWORKS.md has a table",
        choices=tuple(RECIPES),
        is_common=True,
    )
    mixture: str = flag(
        "",
        "with several folders in --records, the proportions of their documents with "
        "commas between them; else by size",
        metavar="SHARE,...",
        takes_list=True,
        default_text="by size",
    )
    init_from: str = flag(
        "",
        "bundle whose network is trained further; it brings the shape",
        metavar="DIR",
        is_common=True,
    )
    encoder: str = flag(
        "",
        "bundle of a trained encoder, below a new decoder with a vocabulary of its own",
        metavar="DIR",
        is_common=True,
    )
    word_vectors: str = flag(
        "",
        "file of word vectors that embeddings begin with, in the text or the binary "
        "format of Word2Vec",
        metavar="FILE",
    )
    architecture: str = flag(
        "transformer",
        "kind of the network",
        choices=tuple(ARCHITECTURES),
        is_common=True,
    )
    network: str = flag("small", "size of the network", choices=SIZES, is_common=True)
    layout: str = flag(
        "vaswani",
        "blocks of a Transformer: bart, pegasus and t5 are those of these networks, "
        "and `precis export --format huggingface` writes them if there is no pointer",
        choices=tuple(LAYOUTS),
    )
    width: int = flag(
        0,
        "width of embeddings and states, in place of the size's",
        metavar="N",
        default_text="the size's",
    )
    heads: int = flag(
        0,
        "attention heads, in place of the size's",
        metavar="HEADS",
        default_text="the size's",
    )
    feed_forward: int = flag(
        0,
        "inner width of the position-wise networks, in place of the size's",
        metavar="N",
        default_text="the size's",
    )
    encoder_layers: int = flag(
        0,
        "layers of the encoder, in place of the size's",
        metavar="LAYERS",
        default_text="the size's",
    )
    decoder_layers: int = flag(
        0,
        "layers of the decoder, in place of the size's",
        metavar="LAYERS",
        default_text="the size's",
    )
    layers: int = flag(
        0,
        "layers of a decoder-only network, in place of the size's",
        metavar="LAYERS",
        default_text="the size's",
    )
    cell: str = flag(
        "",
        "cell of a recurrent network; gru unless said otherwise",
        choices=CELLS,
        default_text="gru",
    )
    attention: str = flag(
        "",
        "scores of a recurrent network's attention; luong unless said otherwise",
        choices=ATTENTIONS,
        default_text="luong",
    )
    input_feeding: bool = flag(
        True, "a recurrent network's step also reads what the step before made"
    )
    convolutional_gate: bool = flag(
        False,
        "a gate of convolutions over the encoder's states, against repetition (Lin et "
        "al. 2018)",
    )
    pointer: bool = flag(
        True, "copy from the source as well as generate (pointer-generator)"
    )
    coverage: bool = flag(
        False,
        "the pointer sees what it has read; best as a second phase, with --init_from "
        "(See et al. 2017)",
    )
    tied_output: bool = flag(
        True, "read the embedding table backwards instead of an output layer of its own"
    )
    dropout: float = flag(
        0.1, "share of values set to zero while training", metavar="SHARE"
    )
    max_source_tokens: int = flag(
        0,
        "tokens of the article that the network reads; 0 takes the records' limit",
        metavar="TOKENS",
        default_text="the records' limit",
    )
    max_target_tokens: int = flag(
        0,
        "longest summary; 0 takes the records' limit",
        metavar="TOKENS",
        default_text="the records' limit",
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if self.init_from and self.encoder:
            raise UsageError(
                "--init_from brings a whole network and --encoder half of one; leave "
                "one of them out"
            )

    @property
    def weights(self) -> tuple[float, ...]:
        """The numbers in `mixture`, in order.

        Raises:
          UsageError: one is no number.
        """
        try:
            return (
                tuple(float(part) for part in self.mixture.split(","))
                if self.mixture
                else ()
            )
        except ValueError as error:
            raise UsageError(
                f"--mixture {self.mixture!r} holds what is no number; write for "
                "instance 0.7,0.3"
            ) from error


TRAIN = (TrainOptions, NetworkOptions, TrainingConfig)


TRAIN_EXTRACTOR = (LabelledRecordsOptions, ExtractiveTraining)


TRAIN_KEYPHRASES = (LabelledRecordsOptions,)
