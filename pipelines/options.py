"""The options of the jobs; those of the corpus stand with its sources, those of
networks and decoding with the model.
"""

import dataclasses

from precis.model import files
from precis.model.config import PRECISIONS, flag, required
from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.network.architectures import ARCHITECTURES, SIZES
from precis.model.network.config import ATTENTIONS, CELLS
from precis.model.quality.fallback import GateConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.text.normalization import one_line
from precis.model.tokenization.wordpiece import RESERVED_TOKENS
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.recipes import RECIPES
from precis.pipelines.targets import TARGETS

TASKS = ("abstractive", "extractive", "keyphrases")
BLOCKS = ("encoder", "self", "cross", "copy")  # attentions of a network


def decode_id(decoding: SearchConfig, precision: str) -> str:
    """Names a search in every row it writes and in every graph that was exported with
    it: 16 hexadecimal digits.
    """
    return files.sha256_json({**dataclasses.asdict(decoding), "precision": precision})[
        :16
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailureOptions:
    """Failures"""

    max_failed_share: float = flag(
        0.5,
        "share of the records that may become dead letters before the job fails with "
        "exit code 1",
    )

    def __post_init__(self) -> None:
        if not 0 <= self.max_failed_share <= 1:
            raise UsageError(
                "--max_failed_share is a share from 0 to 1, not "
                f"{self.max_failed_share}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """Records"""

    output: str = required("folder for the records, the vocabulary and dataset.json")
    target: str = flag(
        "highlights",
        "what a network shall learn to write: the highlights, the first of them as a "
        "headline, or the phrases of the article they name",
        choices=tuple(TARGETS),
    )
    task_prefix: str = flag(
        "",
        "text before every article, by which a network of several tasks knows its "
        "task, such as 'summarize: '",
    )
    tokenizer: str = flag(
        "",
        "tokenizer to encode with: the folder of one, or of records or a bundle that "
        "have one, such as an imported network that is to be "
        "trained further; without it a vocabulary is learned",
    )
    source_tokenizer: str = flag(
        "",
        "tokenizer for the articles alone, such as that of an imported encoder; the "
        "targets have --tokenizer, or else a subword vocabulary "
        "that is learned from the training split's targets alone",
    )
    vocabulary_size: int = flag(16_000, "pieces of the learned vocabulary, at most")
    lower_case: bool = flag(False, "learn a vocabulary of lower-cased text")
    reserved_tokens: str = flag(
        "", "further tokens of the learned vocabulary, with commas between them"
    )
    max_source_tokens: int = flag(
        512, "longer articles are cut; their full length is kept in source_tokens"
    )
    max_target_tokens: int = flag(128, "longer targets are cut")
    oracle_sentences: int = flag(
        0,
        "also keep each article's sentences and which of them, at most so many, make "
        "its best extractive summary; `precis train` needs "
        "them for --task extractive and keyphrases, 5 is usual; 0 keeps none",
    )

    def __post_init__(self) -> None:
        _check_output(self.output)
        if self.target not in TARGETS:
            raise UsageError(
                f"--target is one of {', '.join(TARGETS)}, not {self.target!r}"
            )
        if (normalised := one_line(f"{self.task_prefix}a")[:-1]) != self.task_prefix:
            raise UsageError(
                f"--task_prefix {self.task_prefix!r} is not normalised, as articles "
                f"are; write {normalised!r}"
            )
        if self.oracle_sentences < 0:
            raise UsageError(
                "--oracle_sentences must not be negative, but is "
                f"{self.oracle_sentences}; 0 keeps none"
            )
        for name in ("max_source_tokens", "max_target_tokens"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name} must be at least 1, not {getattr(self, name)}"
                )
        if self.vocabulary_size < 300:
            raise UsageError(
                "--vocabulary_size must be at least 300, room for the characters of "
                f"plain text, not {self.vocabulary_size}"
            )
        if self.tokenizer and (self.lower_case or self.reserved_tokens):
            raise UsageError(
                "--tokenizer brings its own --lower_case and --reserved_tokens; leave "
                "them out"
            )
        tokens = (*RESERVED_TOKENS, *self.reserved)
        for token in self.reserved:
            if token.split() != [token] or tokens.count(token) > 1:
                raise UsageError(
                    f"--reserved_tokens holds {token!r}, which is there twice or has a "
                    "space in it; name each token once"
                )

    @property
    def reserved(self) -> tuple[str, ...]:
        """The names in `reserved_tokens`, in order."""
        return tuple(
            name.strip() for name in self.reserved_tokens.split(",") if name.strip()
        )


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
        _check_output(self.output)
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Checkpoint"""

    checkpoint: str = required(
        "folder of a BART, PEGASUS, T5 or BERT-type encoder in the layout of Hugging "
        "Face: config.json, weights, tokenizer",
        argument="DIR",
    )
    output: str = required("folder for the bundle")
    max_source_tokens: int = flag(
        0,
        "longest source the network reads; 0 takes the checkpoint's limit, and where "
        "positions are learned that is the largest",
    )

    def __post_init__(self) -> None:
        _check_output(self.output)
        if self.max_source_tokens < 0:
            raise UsageError(
                "--max_source_tokens must not be negative, but is "
                f"{self.max_source_tokens}; 0 takes the checkpoint's limit"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeOptions:
    """Summaries"""

    output: str = required("folder for the summaries, dead letters and manifest")
    bundle: str = flag(
        "",
        "network, the --output of `precis train` or `precis import`; without it only "
        "extractive summaries are written",
    )
    task_prefix: str = flag(
        "",
        "text before each article that says what to write of it; the bundle's own if "
        "it has one",
    )
    extractive: str = flag(
        "frequency,lead",
        "extractive methods with commas between them; the first gives "
        "extractive_summary. neural needs --extractive_bundle; oracle, the "
        "sentences closest to the reference, is the upper bound to evaluate the "
        "others with, and first only if it is alone",
    )
    extractive_bundle: str = flag(
        "",
        "network of the method neural, the --output of `precis train --task "
        "extractive`",
    )
    keyphrase_bundle: str = flag(
        "",
        "classifier of phrases, the --output of `precis train --task keyphrases`; "
        "without it there are none",
    )
    keyphrases: int = flag(10, "keyphrases of a document, at most")
    window_documents: int = flag(
        512,
        "documents read ahead, so that those of similar length are searched together",
    )
    search_processes: int = flag(
        0,
        "processes that search, one thread each; 1 searches without further processes, "
        "on all threads; "
        "0 is one per core, or 1 where TensorFlow has an accelerator or Beam has "
        "processes of its own",
    )
    precision: str = flag(
        "float32",
        "number format of the network's layers; others may change a summary",
        choices=PRECISIONS,
    )

    def __post_init__(self) -> None:
        _check_output(self.output)
        for name in ("keyphrases", "window_documents"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name} must be at least 1, not {getattr(self, name)}"
                )
        if self.search_processes < 0:
            raise UsageError(
                "--search_processes must not be negative, but is "
                f"{self.search_processes}; 0 is one per core"
            )
        if self.precision not in PRECISIONS:
            raise UsageError(
                f"--precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}"
            )

    @property
    def methods(self) -> tuple[str, ...]:
        """The names in `extractive`, in order."""
        return tuple(
            name.strip() for name in self.extractive.split(",") if name.strip()
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Graph"""

    bundle: str = required("network, the --output of `precis train`", argument="BUNDLE")
    output: str = required("folder for the SavedModel")
    strip_boilerplate: bool = flag(
        True,
        "leave out credits, datelines and bylines in front of a story, as `precis "
        "summarize` does",
    )
    task_prefix: str = flag(
        "",
        "text before each article that says what to write of it; the bundle's own if "
        "it has one",
    )
    precision: str = flag(
        "float32",
        "number format of the network's layers; others may change a summary",
        choices=PRECISIONS,
    )

    def __post_init__(self) -> None:
        _check_output(self.output)
        if self.precision not in PRECISIONS:
            raise UsageError(
                f"--precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Attention"""

    bundle: str = required("network, the --output of `precis train` or `precis import`")
    text: str = required("file with one article, plain text in UTF-8")
    output: str = required("file for the picture, a PNG")
    summary: str = flag(
        "",
        "file with a summary to read as if it were being written; without it the "
        "network writes its own",
    )
    block: str = flag(
        "cross",
        "encoder reads the source, self what was written, cross the source; copy is "
        "the pointer",
        choices=BLOCKS,
    )
    layer: int = flag(0, "from 1 at the bottom; 0 is the last")
    head: int = flag(0, "from 1; 0 draws all")
    columns: int = flag(
        60, "tokens across, at most: those that are read most; 0 draws all"
    )
    strip_boilerplate: bool = flag(
        True,
        "leave out credits, datelines and bylines in front of a story, as `precis "
        "summarize` does",
    )
    task_prefix: str = flag(
        "",
        "text before the article that says what to write of it; the bundle's own if "
        "it has one",
    )

    def __post_init__(self) -> None:
        for name in ("bundle", "text", "output"):
            if not getattr(self, name):
                raise UsageError(
                    f"--{name} is empty; name a "
                    f"{'folder' if name == 'bundle' else 'file'}"
                )
        for name in ("layer", "head", "columns"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"--{name} must not be negative, but is {getattr(self, name)}"
                )
        if self.block not in BLOCKS:
            raise UsageError(
                f"--block is one of {', '.join(BLOCKS)}, not {self.block!r}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Evaluation"""

    input: str = required(
        "run folder written by `precis summarize`, or a pattern of Parquet files"
    )
    output: str = flag(
        "",
        "folder for rouge.json, rouge.md and scores/; if empty, `evaluation` in the "
        "run folder",
    )
    baseline: str = flag(
        "",
        "system that the others are compared with by paired bootstrap; if empty, lead "
        "where it is there",
    )
    split_sentences: bool = flag(
        False,
        "cut texts that hold several sentences and no line break into one a line "
        "before they are scored",
    )
    show: int = flag(
        0, "print this many documents with their reference and both summaries"
    )
    resamples: int = flag(1000, "bootstrap samples behind each interval")
    confidence: float = flag(0.95, "share of the bootstrap means within an interval")

    def __post_init__(self) -> None:
        if not self.input:
            raise UsageError(
                "--input is empty; give a run folder written by `precis summarize` or "
                "a pattern of Parquet files"
            )
        if self.show < 0:
            raise UsageError(f"--show must be 0 or more, not {self.show}")
        if self.resamples < 1:
            raise UsageError(f"--resamples must be 1 or more, not {self.resamples}")
        if not 0 < self.confidence < 1:
            raise UsageError(
                f"--confidence must lie between 0 and 1, not {self.confidence}; 0.95 "
                "is usual"
            )


def _check_output(output: str) -> None:
    if not output:
        raise UsageError("--output is empty; name the folder to write to")


# The options that each job takes, in the order of its --help.
PREPARE = (CorpusOptions, PrepareOptions, FailureOptions)
TRAIN = {
    "abstractive": (TrainOptions, NetworkOptions, TrainingConfig),
    "extractive": (TrainOptions, ExtractiveTraining),
    "keyphrases": (TrainOptions,),
}
IMPORT = (ImportOptions,)
SUMMARIZE = (
    CorpusOptions,
    SummarizeOptions,
    SelectionConfig,
    QualityConfig,
    GateConfig,
    SearchConfig,
    FailureOptions,
)
EXPORT = (ExportOptions, SearchConfig)
ATTENTION = (AttentionOptions, SearchConfig)
EVALUATE = (EvaluateOptions,)
