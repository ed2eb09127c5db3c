"""The shapes of the networks, as frozen configuration objects that a bundle stores.

`StackConfig` describes a stack of Transformer blocks. `EncoderConfig`,
`TransformerConfig` and `DecoderOnlyConfig` extend it; `RecurrentConfig` and
`SelectorConfig` do not. `architectures.py` has the names of architectures and sizes.
"""

import dataclasses
from typing import Any, ClassVar

from precis.model.config import check_at_least, check_options, later, setting
from precis.model.errors import UsageError

# Integer fields that may be 0; all others must be at least 1.
_MAY_BE_ZERO = ("pad_id", "vector_width", "labels")
POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "relative", "rotary")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")
# Pads the rows of a batch of sources. It is not a token id, as the padding token of a
# vocabulary may occur in a text, and a network must then read it.
SOURCE_PADDING = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The fields that every stack of Transformer blocks has."""

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the padding token of the vocabulary
    width: int  # D
    feed_forward: int  # F, the inner width of the position-wise network
    heads: int  # H
    head_width: int | None = None  # the width of a head; None is D / H
    # G: the number of heads of keys and values, each shared by H / G query heads
    # (Ainslie et al. 2023); None is H.
    kv_heads: int | None = later(None)
    # An RMS norm of each query and key (Henry et al. 2020).
    qk_norm: bool = later(False)
    dropout: float = 0.1  # share of values set to zero while training
    max_source_tokens: int = 512  # longer sources are cut and marked as truncated
    positions: str = setting("sinusoidal", "kind of positions", choices=POSITIONS)
    # Buckets of relative positions: the distances of a bucket share a bias per head.
    relative_buckets: int = 32
    # In tokens; all larger distances share the last bucket.
    relative_distance: int = 128
    rotary_base: float = later(10_000.0)  # theta of rotary positions
    # Scaling of rotary frequencies (Dubey et al. 2024): a divisor; the numbers of turns
    # within a length, below which it applies fully and above which it does not apply;
    # and this length. () is no scaling.
    rotary_scaling: tuple[float, ...] = later(())
    # A letter for each block, such as gllg. In blocks with g, a token reads all tokens;
    # in blocks with l, `window` tokens: itself and half of the others on each side, or
    # all before it in a decoder. "" means g for all.
    reach: str = later("")
    window: int = later(129)
    local_rotary_base: float = later(10_000.0)  # theta of the blocks with l
    # The activation of the position-wise network.
    activation: str = setting("relu", "of the inner layers", choices=ACTIVATIONS)
    # The activation is multiplied by a second linear layer (Shazeer 2020).
    gated_feed_forward: bool = False
    biases: bool = True  # whether linear layers have a bias
    # Each sublayer reads a norm of its input, and a norm follows the last block (Xiong
    # et al. 2020).
    norm_first: bool = False
    rms_norm: bool = False  # norms scale only (Zhang and Sennrich 2019)
    norm_bias: bool = later(True)  # whether a LayerNorm has a bias
    norm_epsilon: float = 1e-6  # the epsilon of every norm
    # With norm_first, whether the attention of the first block has a norm too.
    first_norm: bool = later(True)
    # With norm_first, whether the output of a sublayer has a norm too.
    both_norms: bool = later(False)
    scaled_scores: bool = True  # attention scores are divided by sqrt(head width)
    score_width: int | None = later(None)  # used there instead of the head width
    scaled_embedding: bool = True  # embeddings times sqrt(D)
    embedding_norm: bool = False  # a norm after the positions are added (BERT)

    def __post_init__(self) -> None:
        _check_counts(self)
        check_options(self)
        # JSON reads it as a list.
        object.__setattr__(self, "rotary_scaling", tuple(self.rotary_scaling))
        if self.head_width is not None:
            check_at_least(self, 1, "head_width")
        elif self.width % self.heads:
            next_below = self.width // self.heads * self.heads
            raise UsageError(
                f"the width {self.width} must be a multiple of the {self.heads} "
                f"heads; use {next_below or self.heads}, or another number of heads"
            )
        if self.kv_heads and (
            self.heads % self.kv_heads or self.positions == "relative"
        ):
            raise UsageError(
                f"heads ({self.heads}) must be a multiple of kv_heads "
                f"({self.kv_heads}); relative positions do not support kv_heads"
            )
        for kind, name, width in (
            ("sinusoidal", "width", self.width),
            ("rotary", "width of a head", self.width_of_head),
        ):
            if self.positions == kind and width % 2:
                raise UsageError(
                    f"the {name} must be even for {kind} positions, not {width}"
                )
        buckets_per_direction = self.relative_buckets // 2
        if (
            self.positions == "relative"
            and not 2 <= buckets_per_direction < self.relative_distance
        ):
            raise UsageError(
                "relative positions need at least 4 buckets, and a maximum distance "
                f"above half the number of buckets, not {self.relative_buckets} "
                f"buckets and {self.relative_distance}"
            )

    @property
    def width_of_head(self) -> int:
        """The width of a head, D/H unless `head_width` is set."""
        return self.head_width or self.width // self.heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """The shape of a Transformer encoder."""

    encoder_layers: int
    labels: int = later(0)  # the number of text labels; above 0, outputs logits


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """The shape of a Transformer encoder-decoder.

    The fields of the stack apply to encoder and decoder, unless `decoder_stack`
    describes the decoder.
    """

    encoder_layers: int
    decoder_layers: int
    decoder_stack: StackConfig | None = None  # the decoder's stack, if it differs
    # Instead of cross-attention, self-attention reads source and target with one
    # softmax (T5Gemma 2).
    merged_attention: bool = later(False)
    shared_embedding: bool = True  # source and target are pieces of one vocabulary
    # The output layer is the transposed embedding table (Press and Wolf 2017).
    tied_output: bool = True
    scaled_output: bool = False  # states times D^-0.5 before a tied output layer (T5)
    logits_bias: bool = False  # a tied output layer has a bias per piece
    pointer: bool = True  # tokens are copied from the source too (See et al. 2017)
    convolutional_gate: bool = False  # over the encoder's states (Lin et al. 2018)
    max_target_tokens: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pointer and not self.shared_embedding:
            raise UsageError(
                "the pointer copies pieces of the source, so source and target must "
                "share one vocabulary; train with `pointer=False`"
            )
        for name in ("width", "vocabulary_size") if self.shared_embedding else ():
            of_source, of_target = getattr(self, name), getattr(self.decoder, name)
            if of_source != of_target:
                raise UsageError(
                    f"source and target share an embedding, so their {name} must be "
                    f"equal, not {of_source} and {of_target}"
                )

    @property
    def encoder(self) -> EncoderConfig:
        """The shape of the encoder."""
        stack = _fields_of(StackConfig, self)
        return EncoderConfig(**stack, encoder_layers=self.encoder_layers)

    @property
    def decoder(self) -> StackConfig:
        """The stack of the decoder, with the vocabulary of the target."""
        return self.decoder_stack or StackConfig(**_fields_of(StackConfig, self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderOnlyConfig(StackConfig):
    """The shape of a language model that reads source, start token and summary as one
    sequence (Radford et al. 2018).
    """

    layers: int
    tied_output: bool = True  # this and the next two as in `TransformerConfig`
    pointer: bool = True
    max_target_tokens: int = 128
    # The source is a prompt whose last token serves as the start token. Rules against
    # repetition cover the prompt too.
    continues_source: bool = later(False)

    @property
    def decoder(self) -> StackConfig:
        """The stack of its blocks."""
        return StackConfig(**_fields_of(StackConfig, self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """The shape of a recurrent encoder-decoder with attention (Luong et al. 2015)."""

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the padding token of the vocabulary
    width: int  # D, the width of embeddings and states
    encoder_layers: int  # bidirectional layers
    decoder_layers: int
    convolutional_gate: bool = False  # over the encoder's states (Lin et al. 2018)
    dropout: float = 0.1  # share of values set to zero while training
    tied_output: bool = True  # this and the rest as in `TransformerConfig`
    pointer: bool = True
    max_source_tokens: int = 512
    max_target_tokens: int = 128
    scaled_embedding: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_counts(self)
        if self.width % 2:
            raise UsageError(
                "the width must be even, as each direction of the encoder takes half, "
                f"not {self.width}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectorConfig:
    """The shape of a selector."""

    vector_width: int = 0  # D of the sentence vectors; 0 for features only
    width: int = 64
    layers: int = 2
    feed_forward: int = 256
    heads: int = 4
    dropout: float = 0.1
    max_sentences: int = 48  # N of a window; longer documents are read in windows
    activation: str = "relu"
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        _check_counts(self)
        _ = self.stack  # checks the heads

    @property
    def stack(self) -> StackConfig:
        """The stack of its blocks, without a real vocabulary."""
        return StackConfig(
            vocabulary_size=1,
            pad_id=0,
            width=self.width,
            feed_forward=self.feed_forward,
            heads=self.heads,
            dropout=self.dropout,
            positions="learned",
            activation=self.activation,
            norm_epsilon=self.norm_epsilon,
        )


NetworkConfig = TransformerConfig | DecoderOnlyConfig | RecurrentConfig


def _check_counts(config: Any) -> None:
    """Checks the integer fields and the dropout of a shape."""
    names = [field.name for field in dataclasses.fields(config) if field.type is int]
    check_at_least(config, 1, *(name for name in names if name not in _MAY_BE_ZERO))
    if not 0 <= config.dropout < 1:
        raise UsageError(f"dropout is a share from 0 to below 1, not {config.dropout}")


def _fields_of(kind: type[Any], config: Any) -> dict[str, Any]:
    return {
        field.name: getattr(config, field.name) for field in dataclasses.fields(kind)
    }
