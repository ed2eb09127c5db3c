"""What a network is, as frozen configuration objects; the bundle carries them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model.config import check_at_least_one
from precis.model.errors import DataError, UsageError

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "relative")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")
CELLS = ("gru", "lstm")
ATTENTIONS = ("luong", "bahdanau")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    """What any stack of Transformer blocks is described by; the networks below add what
    is their own.
    """

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the id that fills short rows; it is never read
    width: int  # D
    feed_forward: int  # F, the inner width of the position-wise network
    heads: int  # H
    head_width: int | None = None  # of each head; D / H where it is None
    dropout: float = 0.1  # share of values set to zero while training
    max_source_tokens: int = 512  # longer sources are cut, and said to be
    positions: str = "sinusoidal"  # one of POSITIONS
    relative_buckets: int = (
        32  # of relative positions, that share a number for each head
    )
    relative_distance: int = (
        128  # tokens beyond which all relative positions share the last bucket
    )
    activation: str = "relu"  # of the position-wise network; one of ACTIVATIONS
    gated_feed_forward: bool = (
        False  # the activation is multiplied by a second linear layer (Shazeer 2020)
    )
    biases: bool = True  # linear layers add one
    # a sublayer reads a norm of its input, and a norm follows the last block (Xiong et
    # al. 2020)
    norm_first: bool = False
    rms_norm: bool = False  # norms scale only (Zhang and Sennrich 2019)
    norm_epsilon: float = 1e-6  # of every norm
    scaled_scores: bool = (
        True  # attention scores over the square root of the heads' width
    )
    scaled_embedding: bool = True  # embeddings times sqrt(D)
    embedding_norm: bool = False  # a norm after the positions are added (BERT)

    def __post_init__(self) -> None:
        check_stack(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """The shape of a Transformer encoder."""

    encoder_layers: int

    def __post_init__(self) -> None:
        check_stack(self)
        check_at_least_one(self, "encoder_layers")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """The shape of a Transformer encoder-decoder; its stack is that of both sides
    unless the decoder has one of its own.
    """

    encoder_layers: int
    decoder_layers: int
    decoder_stack: StackConfig | None = None  # of a decoder that is built otherwise
    shared_embedding: bool = True  # source and target are pieces of one vocabulary
    # the output layer reads the embedding table backwards (Press and Wolf 2017)
    tied_output: bool = True
    scaled_output: bool = False  # a tied output layer reads states times D^-0.5 (T5)
    logits_bias: bool = (
        False  # a number per piece, added to the logits of a tied output
    )
    pointer: bool = (
        True  # mixes copying from the source into the output (See et al. 2017)
    )
    coverage: bool = False  # the pointer sees what it has read so far
    convolutional_gate: bool = False  # over the encoder's states (Lin et al. 2018)
    max_target_tokens: int = 128

    def __post_init__(self) -> None:
        check_stack(self)
        check_at_least_one(
            self, "encoder_layers", "decoder_layers", "max_target_tokens"
        )
        check_output(self)
        if self.shared_embedding and self.decoder.width != self.width:
            raise UsageError(
                f"source and target share an embedding, so their widths must be equal, not {self.width} and {self.decoder.width}"
            )
        if (
            self.shared_embedding
            and self.decoder.vocabulary_size != self.vocabulary_size
        ):
            raise UsageError(
                "source and target share an embedding, so their vocabularies must be of one size, "
                f"not {self.vocabulary_size} and {self.decoder.vocabulary_size}"
            )
        if not self.shared_embedding and self.pointer:
            raise UsageError(
                "the pointer copies pieces of the source, so source and target need one vocabulary; train with --no-pointer"
            )

    @property
    def encoder(self) -> EncoderConfig:
        """The shape of the encoder alone."""
        return EncoderConfig(**_fields_of(EncoderConfig, self))

    @property
    def decoder(self) -> StackConfig:
        """What the decoder's blocks are described by; its vocabulary is that of the
        target.
        """
        return self.decoder_stack or StackConfig(**_fields_of(StackConfig, self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderOnlyConfig(StackConfig):
    """The shape of a language model that reads source, start token and summary as one
    sequence (Radford et al. 2018).
    """

    layers: int
    tied_output: bool = True  # as in `TransformerConfig`, and so are the others
    pointer: bool = True
    coverage: bool = False
    max_target_tokens: int = 128

    def __post_init__(self) -> None:
        check_stack(self)
        check_at_least_one(self, "layers", "max_target_tokens")
        check_output(self)

    @property
    def decoder(self) -> StackConfig:
        """What its blocks are described by."""
        return StackConfig(**_fields_of(StackConfig, self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """The shape of a recurrent encoder-decoder with attention (Bahdanau et al. 2015,
    Luong et al. 2015).
    """

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the id that fills short rows; it is never read
    width: int  # D, of embeddings and states
    encoder_layers: int  # each reads in both directions
    decoder_layers: int
    cell: str = "gru"  # one of CELLS
    attention: str = "luong"  # one of ATTENTIONS
    # a step also reads what the attention of the step before it made (Luong et al.
    # 2015, section 3.3)
    input_feeding: bool = True
    convolutional_gate: bool = False  # over the encoder's states (Lin et al. 2018)
    dropout: float = 0.1  # share of values set to zero while training
    tied_output: bool = True  # as in `TransformerConfig`, and so are the others
    pointer: bool = True
    coverage: bool = False
    max_source_tokens: int = 512
    max_target_tokens: int = 128

    def __post_init__(self) -> None:
        check_at_least_one(
            self,
            "vocabulary_size",
            "width",
            "encoder_layers",
            "decoder_layers",
            "max_source_tokens",
            "max_target_tokens",
        )
        _check_choices(self, cell=CELLS, attention=ATTENTIONS)
        _check_dropout(self.dropout)
        check_output(self)
        if self.width % 2:
            raise UsageError(
                f"the width must be even, half of it for each direction of the encoder, not {self.width}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractorConfig:
    """The shape of the network that scores sentences."""

    vector_width: int = 0  # D of the sentence vectors; 0 reads the features alone
    width: int = 128
    layers: int = 2
    feed_forward: int = 512
    heads: int = 4
    dropout: float = 0.1
    max_sentences: int = (
        48  # N that it reads at once; a longer document is read in windows
    )
    activation: str = "gelu"
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        check_at_least_one(self, "layers", "max_sentences")
        check_stack(self.stack)

    @property
    def stack(self) -> StackConfig:
        """What its blocks are described by; it has no vocabulary."""
        own = {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if name not in ("vector_width", "layers", "max_sentences")
        }
        return StackConfig(vocabulary_size=1, pad_id=0, positions="learned", **own)


NetworkConfig = TransformerConfig | DecoderOnlyConfig | RecurrentConfig


class Architecture(NamedTuple):
    """A kind of network that writes summaries.

    Attributes:
      config: the class of its configuration.
      sizes: what the name of a size stands for on the command line. `four_layers` and
        `six_layers` are the two configurations of the material the project was founded
        on.
    """

    config: type[Any]
    sizes: Mapping[str, Mapping[str, Any]]


_STACKS: Mapping[str, Mapping[str, int]] = {
    "tiny": {"width": 128, "feed_forward": 512, "heads": 4},
    "four_layers": {"width": 128, "feed_forward": 512, "heads": 8},
    "small": {"width": 256, "feed_forward": 1024, "heads": 8},
    "six_layers": {"width": 256, "feed_forward": 1024, "heads": 8},
    "base": {"width": 512, "feed_forward": 2048, "heads": 8},
}
_LAYERS = {"tiny": 2, "four_layers": 4, "small": 4, "six_layers": 6, "base": 6}
SIZES = tuple(_STACKS)
ARCHITECTURES: Mapping[str, Architecture] = {
    "transformer": Architecture(
        TransformerConfig,
        {
            name: {
                "encoder_layers": _LAYERS[name],
                "decoder_layers": _LAYERS[name],
                **stack,
            }
            for name, stack in _STACKS.items()
        },
    ),
    "decoder_only": Architecture(
        DecoderOnlyConfig,
        {
            name: {"layers": 2 * _LAYERS[name], **stack}
            for name, stack in _STACKS.items()
        },
    ),
    "recurrent": Architecture(
        RecurrentConfig,
        {
            name: {
                "encoder_layers": layers,
                "decoder_layers": layers,
                "width": _STACKS[name]["width"],
            }
            for name, layers in {"tiny": 1, "small": 1, "base": 2}.items()
        },
    ),
}


def named_network(
    size: str, *, architecture: str = "transformer", **settings: Any
) -> Any:
    """The configuration of a named size, with the given fields set or replaced.

    Raises:
      UsageError: a size or an architecture that does not exist, or a setting that the
          architecture does not have.
    """
    if architecture not in ARCHITECTURES:
        raise UsageError(
            f"there is no architecture {architecture!r}; there are {', '.join(ARCHITECTURES)}"
        )
    config, sizes = ARCHITECTURES[architecture]
    if size not in sizes:
        raise UsageError(
            f"there is no network size {size!r} of {architecture}; the sizes are {', '.join(sizes)}"
        )
    for name in settings.keys() - {field.name for field in dataclasses.fields(config)}:
        raise UsageError(
            f"--{name} means nothing to a network of the architecture {architecture}; leave it out"
        )
    return config(**{**sizes[size], **settings})


def architecture_of(config: NetworkConfig) -> str:
    """The name of a configuration's architecture."""
    return next(
        name
        for name, architecture in ARCHITECTURES.items()
        if isinstance(config, architecture.config)
    )


def read_config(architecture: str, fields: Mapping[str, Any]) -> Any:
    """A configuration from what `dataclasses.asdict` made of it.

    Raises:
      DataError: an architecture or a field that is not known.
    """
    if architecture not in ARCHITECTURES:
        raise DataError(
            f"the architecture {architecture!r} is none of {', '.join(ARCHITECTURES)}; only a newer precis knows it"
        )
    stack = fields.get("decoder_stack")
    try:
        nested = {"decoder_stack": StackConfig(**stack)} if stack else {}
        return ARCHITECTURES[architecture].config(**{**fields, **nested})
    except TypeError as error:
        raise DataError(
            f"a configuration of another version of precis ({error}); train or import again"
        ) from error


def target_vocabulary_size(config: NetworkConfig) -> int:
    """V of the summaries."""
    return (
        config.vocabulary_size
        if isinstance(config, RecurrentConfig)
        else config.decoder.vocabulary_size
    )


def check_stack(config: StackConfig) -> None:
    """Refuses a stack that cannot be.

    Raises:
      UsageError: a field out of its range, or two that contradict each other.
    """
    check_at_least_one(
        config,
        "vocabulary_size",
        "width",
        "feed_forward",
        "heads",
        "max_source_tokens",
        "relative_buckets",
        "relative_distance",
    )
    if config.head_width is not None:
        check_at_least_one(config, "head_width")
    elif config.width % config.heads:
        raise UsageError(
            f"the width must be a multiple of the number of heads, but {config.width} is not one of {config.heads}; "
            f"take {config.width // config.heads * config.heads or config.heads} or another number of heads"
        )
    _check_choices(config, positions=POSITIONS, activation=ACTIVATIONS)
    if config.width % 2 and config.positions.startswith("sinusoidal"):
        raise UsageError(
            f"the width must be even for sinusoidal positions, not {config.width}"
        )
    if (
        config.positions == "relative"
        and not 2 <= config.relative_buckets // 2 < config.relative_distance
    ):
        raise UsageError(
            "relative positions need at least 4 buckets, and a longest distance above half as many, "
            f"not {config.relative_buckets} buckets and {config.relative_distance}"
        )
    _check_dropout(config.dropout)


def check_output(config: Any) -> None:
    """Refuses coverage without a pointer.

    Raises:
      UsageError: so it is.
    """
    if config.coverage and not config.pointer:
        raise UsageError(
            "coverage is what the pointer has read so far, so it needs one; leave --no-pointer or --coverage out"
        )


def _check_choices(config: Any, **choices: tuple[str, ...]) -> None:
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise UsageError(
                f"{name} is one of {', '.join(allowed)}, not {getattr(config, name)!r}"
            )


def _check_dropout(dropout: float) -> None:
    if not 0 <= dropout < 1:
        raise UsageError(f"dropout is a share from 0 to below 1, not {dropout}")


def _fields_of(kind: type[Any], config: Any) -> dict[str, Any]:
    return {
        field.name: getattr(config, field.name) for field in dataclasses.fields(kind)
    }
