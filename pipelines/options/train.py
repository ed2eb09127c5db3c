"""The options of `precis train`."""

import dataclasses

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.model.network.architectures import ARCHITECTURES, SIZES
from precis.model.network.config import ATTENTIONS, CELLS
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.options.output import check_output
from precis.pipelines.recipes import RECIPES

TASKS = ("abstractive", "extractive", "keyphrases")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Task"""

    task: str = flag(
        "abstractive",
        "what to train: a network that writes, one that picks sentences, or a "
        "classifier of phrases",
        choices=TASKS,
    )
    records: str = required(
        "folder that `precis prepare` wrote; to train on several tasks, some with "
        "commas between them"
    )
    output: str = required(
        "folder for the bundle, and for checkpoints and logs in training/ below it"
    )

    def __post_init__(self) -> None:
        check_output(self.output)
        if self.task not in TASKS:
            raise UsageError(f"--task is one of {', '.join(TASKS)}, not {self.task!r}")
        if len(self.folders) > 1 and self.task != "abstractive":
            raise UsageError(
                f"--records names {len(self.folders)} folders, and --task {self.task} "
                "takes one"
            )

    @property
    def folders(self) -> tuple[str, ...]:
        """The names in `records`, in order."""
        return tuple(name.strip() for name in self.records.split(",") if name.strip())


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Network"""

    recipe: str = flag(
        "",
        "named settings, of which any flag given beside it replaces one; the README "
        "has a table",
        choices=tuple(RECIPES),
    )
    mixture: str = flag(
        "",
        "with several folders in --records, the proportions of their documents with "
        "commas between them; else by size",
    )
    init_from: str = flag(
        "", "bundle whose network is trained on; its shape is then its own"
    )
    encoder: str = flag(
        "",
        "bundle of a trained encoder, below a new decoder with a vocabulary of its own",
    )
    word_vectors: str = flag(
        "",
        "file of word vectors that embeddings begin with, in the text or the binary "
        "format of Word2Vec",
    )
    architecture: str = flag(
        "transformer", "kind of the network", choices=tuple(ARCHITECTURES)
    )
    network: str = flag("small", "size of the network", choices=SIZES)
    width: int = flag(0, "width of embeddings and states, in place of the size's")
    heads: int = flag(0, "attention heads, in place of the size's")
    feed_forward: int = flag(
        0, "inner width of the position-wise networks, in place of the size's"
    )
    encoder_layers: int = flag(0, "layers of the encoder, in place of the size's")
    decoder_layers: int = flag(0, "layers of the decoder, in place of the size's")
    layers: int = flag(0, "layers of a decoder-only network, in place of the size's")
    cell: str = flag(
        "", "cell of a recurrent network; gru unless said otherwise", choices=CELLS
    )
    attention: str = flag(
        "",
        "scores of a recurrent network's attention; luong unless said otherwise",
        choices=ATTENTIONS,
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
    dropout: float = flag(0.1, "share of values set to zero while training")
    max_source_tokens: int = flag(
        0, "tokens of the article that the network reads; 0 takes the records' limit"
    )
    max_target_tokens: int = flag(0, "longest summary; 0 takes the records' limit")

    def __post_init__(self) -> None:
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


TRAIN = {
    "abstractive": (TrainOptions, NetworkOptions, TrainingConfig),
    "extractive": (TrainOptions, ExtractiveTraining),
    "keyphrases": (TrainOptions,),
}
