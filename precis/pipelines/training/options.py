"""The options of the commands that train."""

import dataclasses

from precis.model.config import (
    BUNDLE,
    INPUT,
    LOCAL,
    OUTPUT,
    Options,
    flag,
    required,
    setting,
)
from precis.model.network.architectures import ARCHITECTURES, LAYOUTS, SIZES
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.corpus.options import CorpusOptions, FailureOptions
from precis.pipelines.run.options import WorkerOptions
from precis.pipelines.training.recipes import RECIPES


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """Records"""

    records: str = required(
        "folder that `precis prepare` wrote; to train on several tasks, some with "
        "commas between them",
        metavar="DIR[,DIR]",
        is_common=True,
        takes_list=True,
        place=INPUT,
    )
    output: str = required(
        "folder for the bundle, and for checkpoints and logs in training/ below it",
        is_common=True,
        place=OUTPUT,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledRecordsOptions(TrainOptions):
    """Records"""

    records: str = required(
        "folder that `precis prepare --oracle_sentences 5` wrote",
        is_common=True,
        place=INPUT,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkOptions(Options):
    """Network"""

    recipe: str = flag(
        "",
        "named settings, of which any flag given beside it replaces one; "
        "docs/MODELS.md has a table",
        choices=tuple(RECIPES),
        is_common=True,
    )
    init_from: str = flag(
        "",
        "bundle whose network is trained further; it brings the shape",
        is_common=True,
        place=BUNDLE,
    )
    encoder: str = flag(
        "",
        "bundle of a trained encoder, below a new decoder with a vocabulary of its own",
        is_common=True,
        place=BUNDLE,
    )
    word_vectors: str = flag(
        "",
        "file of word vectors that embeddings begin with, in the text format of "
        "Word2Vec, GloVe and fastText",
        place=LOCAL,
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
        "and `precis export` writes them if there is no pointer",
        choices=tuple(LAYOUTS),
    )
    width: int = flag(
        0,
        "width of embeddings and states, in place of the size's",
        metavar="N",
        default_text="the size's",
    )
    heads: int = setting(0, "attention heads, in place of the size's")
    feed_forward: int = setting(
        0, "inner width of the position-wise networks, in place of the size's"
    )
    encoder_layers: int = setting(0, "layers of the encoder, in place of the size's")
    decoder_layers: int = setting(0, "layers of the decoder, in place of the size's")
    layers: int = setting(0, "layers of a decoder-only network, in place of the size's")
    convolutional_gate: bool = flag(
        False,
        "a gate of convolutions over the encoder's states, against repetition (Lin et "
        "al. 2018)",
    )
    pointer: bool = flag(
        True, "copy from the source as well as generate (pointer-generator)"
    )
    tied_output: bool = setting(
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


TRAIN = (TrainOptions, NetworkOptions, TrainingConfig)


TRAIN_SELECTOR = (LabelledRecordsOptions, ExtractiveTraining)


TRAIN_KEYPHRASES = (LabelledRecordsOptions,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedCorpusOptions(CorpusOptions):
    """Corpus"""

    seed: int = flag(
        17,
        "seed of weights, dropout and the order of documents; it changes no split",
        metavar="N",
        is_common=True,
    )
    validation_share: float = flag(
        0.02,
        "share of validation documents in a corpus without splits; they choose the "
        "best weights",
        metavar="SHARE",
        is_common=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizerOptions(Options):
    """Summarizer"""

    output: str = required(
        "folder for the summarizer; records, checkpoints and logs go to training/ "
        "below it",
        is_common=True,
        place=OUTPUT,
    )
    writer_steps: int = flag(
        0,
        "optimizer steps of the network that shortens sentences, which take most of "
        "the time; 0 is one for ten pairs of a sentence and its line, at most 2,500",
        metavar="STEPS",
        is_common=True,
        default_text="a tenth of the pairs, at most 2,500",
        least=0,
        zero="goes by the corpus",
    )


TRAIN_SUMMARIZER = (
    TrainedCorpusOptions,
    SummarizerOptions,
    FailureOptions,
    WorkerOptions,
)
