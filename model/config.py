"""What a network is and how it is decoded, as frozen configuration objects; the bundle carries them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from model.errors import UsageError


def flag(default: Any, text: str, **metadata: Any) -> Any:
    """A dataclass field that is a command-line flag too: its default and its help text. `choices=` limits the values."""
    return dataclasses.field(default=default, metadata={"help": text, **metadata})


def required(text: str, **metadata: Any) -> Any:
    """A flag without a default. `argument=` names it in the help and makes it one that is written without its name."""
    return dataclasses.field(metadata={"help": text, **metadata})


# A size is what the name of a network stands for on the command line. `four_layers` and `six_layers` are the two configurations of the
# material the project was founded on.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"encoder_layers": 2, "decoder_layers": 2, "width": 128, "feed_forward": 512, "heads": 4},
    "four_layers": {"encoder_layers": 4, "decoder_layers": 4, "width": 128, "feed_forward": 512, "heads": 8},
    "small": {"encoder_layers": 4, "decoder_layers": 4, "width": 256, "feed_forward": 1024, "heads": 8},
    "six_layers": {"encoder_layers": 6, "decoder_layers": 6, "width": 256, "feed_forward": 1024, "heads": 8},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "feed_forward": 2048, "heads": 8},
}


POSITIONS = ("sinusoidal", "learned")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The shape of a Transformer encoder; the fields are those of `NetworkConfig`."""

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the id that fills short rows; it is never read
    encoder_layers: int
    width: int  # D
    feed_forward: int  # F, the inner width of the position-wise network
    heads: int  # H; each has D / H of the width
    dropout: float = 0.1  # share of values set to zero while training
    max_source_tokens: int = 512  # the longest row that it reads
    positions: str = "sinusoidal"  # one of POSITIONS
    activation: str = "relu"  # of the position-wise network; one of ACTIVATIONS
    scaled_embedding: bool = True  # embeddings times sqrt(D)
    embedding_norm: bool = False  # a LayerNorm after the positions are added (BERT)
    norm_epsilon: float = 1e-6  # of every LayerNorm

    def __post_init__(self) -> None:
        _check_encoder(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractorConfig:
    """The shape of the network that scores sentences."""

    vector_width: int = 0  # D of the sentence vectors; 0 reads the features alone
    width: int = 128
    layers: int = 2
    feed_forward: int = 512
    heads: int = 4
    dropout: float = 0.1
    max_sentences: int = 48  # N that it reads at once; a longer document is read in windows
    activation: str = "gelu"
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        _check_at_least_one(self, "width", "layers", "feed_forward", "heads", "max_sentences")
        _check_heads(self.width, self.heads)
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout is a share from 0 to below 1, not {self.dropout}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The shape of a Transformer encoder-decoder."""

    vocabulary_size: int  # V, pieces of the tokenizer that source and target share
    pad_id: int  # the id that fills short rows; it is never read
    encoder_layers: int
    decoder_layers: int
    width: int  # D
    feed_forward: int  # F, the inner width of the position-wise network
    heads: int  # H; each has D / H of the width
    dropout: float = 0.1  # share of values set to zero while training
    tied_output: bool = True  # the output layer reads the embedding table backwards (Press and Wolf 2017)
    pointer: bool = True  # mixes copying from the source into the output (See et al. 2017)
    max_source_tokens: int = 512  # longer sources are cut, and said to be
    max_target_tokens: int = 128
    positions: str = "sinusoidal"  # one of POSITIONS
    activation: str = "relu"  # of the position-wise network; one of ACTIVATIONS
    scaled_embedding: bool = True  # embeddings times sqrt(D)
    embedding_norm: bool = False  # a LayerNorm after the positions are added (BART)
    logits_bias: bool = False  # a number per piece, added to the logits of a tied output
    norm_epsilon: float = 1e-6  # of every LayerNorm
    decoder_feed_forward: int | None = None  # F of the decoder where it is another
    decoder_heads: int | None = None  # H of the decoder where it is another

    def __post_init__(self) -> None:
        _check_at_least_one(self, "decoder_layers", "max_target_tokens")
        _check_encoder(self)
        _check_heads(self.width, self.decoder_heads or self.heads)

    @property
    def encoder(self) -> EncoderConfig:
        """The shape of the encoder alone."""
        return EncoderConfig(**{field.name: getattr(self, field.name) for field in dataclasses.fields(EncoderConfig)})


def _check_encoder(config: EncoderConfig | NetworkConfig) -> None:
    """Refuses an encoder that cannot be.

    Raises:
      UsageError: a field out of its range, or two that contradict each other.
    """
    _check_at_least_one(config, "vocabulary_size", "encoder_layers", "width", "feed_forward", "heads", "max_source_tokens")
    _check_heads(config.width, config.heads)
    for name, choices in (("positions", POSITIONS), ("activation", ACTIVATIONS)):
        if getattr(config, name) not in choices:
            raise UsageError(f"{name} is one of {', '.join(choices)}, not {getattr(config, name)!r}")
    if config.width % 2 and config.positions == "sinusoidal":
        raise UsageError(f"the width must be even for sinusoidal positions, not {config.width}")
    if not 0 <= config.dropout < 1:
        raise UsageError(f"dropout is a share from 0 to below 1, not {config.dropout}")


def _check_at_least_one(config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(config, name)}")


def _check_heads(width: int, heads: int) -> None:
    if width % heads:
        raise UsageError(
            f"the width must be a multiple of the number of heads, but {width} is not one of {heads}; "
            f"take {width // heads * heads or heads} or another number of heads"
        )


def named_network(size: str, **settings: Any) -> NetworkConfig:
    """The configuration of a named size, with the given fields set or replaced.

    Raises:
      UsageError: a size that does not exist.
    """
    if size not in SIZES:
        raise UsageError(f"there is no network size {size!r}; the sizes are {', '.join(SIZES)}")
    return NetworkConfig(**{**SIZES[size], **settings})


LENGTH_PENALTIES = ("none", "average", "wu")
REPETITION_PENALTIES = ("log_probs", "logits")
EARLY_STOPPING = ("never", "first_k", "bound")
UNFINISHED = ("last", "compete")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """Abstractive decoding; what an imported bundle sets itself comes before these defaults"""

    beam_width: int = flag(4, "hypotheses kept at each step; 1 is greedy search")
    n_best: int = flag(1, "summaries kept for each document, best first")
    length_penalty: float = flag(1.0, "alpha, the strength of the length penalty: 0 is none, larger values favour longer summaries")
    length_penalty_form: str = flag(
        "wu",
        "what the log-probability of a summary of n pieces is divided by: wu ((5 + n) / 6)^alpha (Wu et al. 2016), average n^alpha, none 1",
        choices=LENGTH_PENALTIES,
    )
    coverage_penalty: float = flag(0.0, "beta of Wu et al. 2016: larger values favour summaries that read all of the source; 0 is off")
    min_summary_tokens: int = flag(0, "pieces before the end is allowed")
    max_summary_tokens: int = flag(128, "pieces after which a summary is cut")
    no_repeat_ngram: int = flag(3, "no sequence of this many pieces occurs twice in a summary; 0 allows all")
    repetition_penalty: float = flag(1.0, "log-probabilities of pieces that were written are multiplied by this (Keskar et al. 2019)")
    repetition_penalty_form: str = flag(
        "log_probs",
        "what the repetition penalty multiplies: log_probs, or logits, which it divides where they are positive",
        choices=REPETITION_PENALTIES,
    )
    early_stopping: str = flag(
        "never",
        "when a document is done: never before no hypothesis can still win; first_k once beam_width have finished; "
        "bound once the best live one, ended now, would not win",
        choices=EARLY_STOPPING,
    )
    unfinished: str = flag(
        "last", "summaries cut at the maximum length: last behind all finished ones, compete by score alone", choices=UNFINISHED
    )
    beam_groups: int = flag(1, "groups of the beam that are pushed apart (Vijayakumar et al. 2018); 1 is plain beam search")
    diversity_penalty: float = flag(0.0, "subtracted from a piece's log-probability for each time an earlier group wrote it in this step")

    def __post_init__(self) -> None:
        if self.beam_width < 1:
            raise UsageError(f"--beam_width must be at least 1, not {self.beam_width}")
        if not 1 <= self.n_best <= self.beam_width:
            raise UsageError(
                f"--n_best must lie between 1 and --beam_width ({self.beam_width}), not be {self.n_best}; widen the beam or ask for fewer"
            )
        if not 0 <= self.min_summary_tokens < self.max_summary_tokens:
            raise UsageError(
                f"--min_summary_tokens ({self.min_summary_tokens}) must be at least 0 "
                f"and below --max_summary_tokens ({self.max_summary_tokens})"
            )
        for name in ("no_repeat_ngram", "coverage_penalty", "diversity_penalty"):
            if getattr(self, name) < 0:
                raise UsageError(f"--{name} must not be negative, but is {getattr(self, name)}; 0 turns it off")
        if self.repetition_penalty <= 0:
            raise UsageError(f"--repetition_penalty must be above 0, not {self.repetition_penalty}; 1 turns it off")
        for name, choices in (
            ("length_penalty_form", LENGTH_PENALTIES),
            ("repetition_penalty_form", REPETITION_PENALTIES),
            ("early_stopping", EARLY_STOPPING),
            ("unfinished", UNFINISHED),
        ):
            if getattr(self, name) not in choices:
                raise UsageError(f"--{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if self.beam_groups < 1 or self.beam_width % self.beam_groups:
            raise UsageError(f"--beam_groups ({self.beam_groups}) must divide --beam_width ({self.beam_width})")


def refuse_coverage(config: DecodingConfig) -> None:
    """Refuses a search that asks what a network has read of the source: beam search can weigh it, but no network here keeps count of it.

    Raises:
      UsageError: the coverage penalty is on.
    """
    if config.coverage_penalty:
        raise UsageError(
            "--coverage_penalty needs a network that counts what it has read of the source, and none does so far; leave it at 0"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingTokens:
    """The token ids that a search needs to know; they come from the tokenizer and, for imported networks, from the checkpoint."""

    start_id: int  # stands before the first token; not part of the summary
    end_id: int
    pad_id: int  # fills what follows the end
    suppressed: tuple[int, ...] = ()  # never written
    prefix: tuple[int, ...] = ()  # what every summary begins with; given, so it costs no probability
    last_id: int | None = None  # written at the last place where a summary reaches the maximum length; costs no probability


# Extractive methods that others are measured against: their sentences are taken as they are.
BASELINES = ("lead", "random", "oracle")
REDUNDANCY = ("none", "trigrams", "mmr")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """Selection"""

    sentences: int = flag(3, "sentences of an extractive summary, at most")
    max_words: int = flag(0, "words of an extractive summary, at most: sentences that do not fit any more are passed over; 0 sets no limit")
    redundancy: str = flag(
        "trigrams",
        "what keeps an extractive summary from saying things twice: trigrams takes no sentence that shares three words in a row with one "
        "taken before, mmr weighs score against similarity (maximal marginal relevance), none takes the best scores",
        choices=REDUNDANCY,
    )
    mmr_lambda: float = flag(0.7, "weight of the score in maximal marginal relevance, from 0 to 1; the rest weighs similarity")

    def __post_init__(self) -> None:
        if self.sentences < 1:
            raise UsageError(f"--sentences must be at least 1, not {self.sentences}")
        if self.max_words < 0:
            raise UsageError(f"--max_words must not be negative, but is {self.max_words}; 0 sets no limit")
        if self.redundancy not in REDUNDANCY:
            raise UsageError(f"--redundancy is one of {', '.join(REDUNDANCY)}, not {self.redundancy!r}")
        if not 0 <= self.mmr_lambda <= 1:
            raise UsageError(f"--mmr_lambda must lie between 0 and 1, not be {self.mmr_lambda}")

    def for_method(self, method: str) -> "SelectionConfig":
        """The selection for a method by name: a baseline's sentences are taken whatever they repeat."""
        return dataclasses.replace(self, redundancy="none") if method in BASELINES else self


PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
STRATEGIES = ("auto", "one", "mirrored", "multiworker", "tpu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Training"""

    steps: int = flag(10_000, "optimizer steps")
    batch_tokens: int = flag(8_192, "padded source and target tokens of one step, over all replicas")
    accumulate: int = flag(1, "pieces that each batch is worked in, one after the other, to save memory; only dropout differs")
    learning_rate: float = flag(
        0.0,
        "the highest learning rate, reached at the end of the warm-up; 0 takes D^-0.5 warmup^-0.5 (Vaswani et al. 2017), "
        "0.002 with --task extractive",
    )
    warmup_steps: int = flag(4_000, "steps of linear warm-up; after them the rate falls with the inverse square root of the step")
    label_smoothing: float = flag(0.1, "share of the target probability spread over all tokens")
    clip_norm: float = flag(1.0, "gradients with a larger global norm are scaled down to it; 0 never")
    precision: str = flag("float32", "number format of the layers; weights stay float32", choices=PRECISIONS)
    strategy: str = flag("auto", "where to train: auto takes a TPU, else all GPUs, else this processor", choices=STRATEGIES)
    seed: int = flag(17, "seed of weights, dropout and the order of documents")
    shuffle_documents: int = flag(10_000, "documents held in memory to be drawn from at random")
    checkpoint_steps: int = flag(500, "steps between checkpoints")
    keep_checkpoints: int = flag(3, "checkpoints kept, besides the best")
    validation_steps: int = flag(1_000, "steps between validations; 0 never validates")
    validation_documents: int = flag(200, "documents of the validation split that are scored, from its beginning")
    validation_beam_width: int = flag(1, "beam width of the summaries scored in validation; 1 is greedy")

    def __post_init__(self) -> None:
        for name in ("steps", "batch_tokens", "accumulate", "warmup_steps", "checkpoint_steps", "keep_checkpoints", "shuffle_documents"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "clip_norm", "validation_steps"):
            if getattr(self, name) < 0:
                raise UsageError(f"--{name} must not be negative, but is {getattr(self, name)}")
        for name, choices in (("precision", PRECISIONS), ("strategy", STRATEGIES)):
            if getattr(self, name) not in choices:
                raise UsageError(f"--{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"--label_smoothing is a share from 0 to below 1, not {self.label_smoothing}")
        if self.validation_steps and (self.validation_documents < 1 or self.validation_beam_width < 1):
            raise UsageError(
                "validation needs --validation_documents and --validation_beam_width of at least 1; --validation_steps 0 turns it off"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractiveTraining:
    """Training with --task extractive"""

    encoder: str = flag(
        "", "bundle whose encoder reads the sentences, of `precis import` or `precis train`; without one features alone decide"
    )
    vector_precision: str = flag("mixed_bfloat16", "number format of that encoder's layers", choices=PRECISIONS)
    epochs: int = flag(6, "passes through the records")
    window_sentences: int = flag(
        48, "sentences of an article that are read together; training reads the first so many, a longer article is scored in windows"
    )
    batch_documents: int = flag(64, "articles of one step")
    learning_rate: float = flag(0.0, "the highest learning rate, reached after a tenth of the steps; 0 takes 0.002")
    dropout: float = flag(0.1, "share of values set to zero while training")
    seed: int = flag(17, "seed of weights, dropout and the order of documents")

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_documents", "window_sentences"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} must be at least 1, not {getattr(self, name)}")
        if self.learning_rate < 0:
            raise UsageError(f"--learning_rate must not be negative, but is {self.learning_rate}")
        if self.vector_precision not in PRECISIONS:
            raise UsageError(f"--vector_precision is one of {', '.join(PRECISIONS)}, not {self.vector_precision!r}")
