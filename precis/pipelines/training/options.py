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
        "folder that `precis prepare` wrote; several, separated by commas, to train "
        "on several tasks",
        metavar="DIR[,DIR]",
        is_common=True,
        takes_list=True,
        place=INPUT,
    )
    output: str = required(
        "folder for the bundle; its subfolder training/ holds checkpoints and logs",
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
        "set of settings for the flags below, any of which you can still give; "
        "docs/MODELS.md lists them",
        choices=tuple(RECIPES),
        is_common=True,
    )
    init_from: str = flag(
        "",
        "bundle whose network is trained further, in its shape",
        is_common=True,
        place=BUNDLE,
    )
    encoder: str = flag(
        "",
        "bundle of a trained encoder; the new decoder has a separate vocabulary",
        is_common=True,
        place=BUNDLE,
    )
    word_vectors: str = flag(
        "",
        "file of word vectors to initialize the embeddings, in the text format of "
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
        "layout of a Transformer block: vaswani, or bart, pegasus or t5 like these "
        "networks, which `precis export` can write if there is no pointer",
        choices=tuple(LAYOUTS),
    )
    width: int = flag(
        0,
        "width of embeddings and states, instead of the value from `network=`",
        metavar="N",
        default_text="from `network=`",
    )
    heads: int = setting(0, "attention heads, instead of the value from `network=`")
    feed_forward: int = setting(
        0,
        (
            "inner width of the feed-forward layers, instead of the value from "
            "`network=`"
        ),
    )
    encoder_layers: int = setting(
        0, ("layers of the encoder, instead of the value from `network=`")
    )
    decoder_layers: int = setting(
        0, ("layers of the decoder, instead of the value from `network=`")
    )
    layers: int = setting(
        0, ("layers of a decoder-only network, instead of the value from `network=`")
    )
    convolutional_gate: bool = flag(
        False,
        "filter the encoder's states with a convolutional gate, against repetition "
        "(Lin et al. 2018)",
    )
    pointer: bool = flag(
        True, "let the network also copy from the source (pointer-generator)"
    )
    tied_output: bool = setting(
        True, "use the embedding table as the output layer, instead of a separate layer"
    )
    dropout: float = flag(
        0.1, "share of values set to zero during training", metavar="SHARE"
    )
    max_source_tokens: int = flag(
        0,
        "maximum number of tokens that the network reads of an article; 0 uses the "
        "limit of the records",
        metavar="TOKENS",
        default_text="the records' limit",
    )
    max_target_tokens: int = flag(
        0,
        "maximum number of tokens of a summary; 0 uses the limit of the records",
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
        "seed of weights, dropout and the order of documents, but not of the splits",
        metavar="N",
        is_common=True,
    )
    validation_share: float = flag(
        0.02,
        "share of validation documents, which choose the best weights, in a corpus "
        "without splits",
        metavar="SHARE",
        is_common=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizerOptions(Options):
    """Summarizer"""

    output: str = required(
        "folder for the summarizer; its subfolder training/ holds records, "
        "checkpoints and logs",
        is_common=True,
        place=OUTPUT,
    )
    writer_steps: int = flag(
        0,
        "optimizer steps of the writer, which take most of the time; 0: one per ten "
        "pairs of a sentence and its line, at most 2,500",
        metavar="STEPS",
        is_common=True,
        default_text="a tenth of the pairs, at most 2,500",
        least=0,
        zero="chooses them by the corpus",
    )


TRAIN_SUMMARIZER = (
    TrainedCorpusOptions,
    SummarizerOptions,
    FailureOptions,
    WorkerOptions,
)
