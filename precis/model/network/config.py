"""The shapes of the networks, as frozen configuration objects that a bundle stores.

`StackConfig` describes a stack of Transformer blocks; `EncoderConfig`,
`TransformerConfig` and `DecoderOnlyConfig` add their layers to it. `RecurrentConfig`
and `SelectorConfig` stand alone. `architectures.py` has the names of architectures and
sizes.
"""

import dataclasses
from typing import Any, ClassVar

from precis.model.config import check_at_least, check_fields, later, setting
from precis.model.errors import UsageError

# Numbers of a configuration that are no counts.
_MAY_BE_ZERO = ("pad_id", "vector_width", "labels")
POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "relative", "rotary")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")
# Fills the rows of a batch of sources up. It is the id of no token: the padding token
# of a vocabulary may stand in a text, and a network then reads it.
SOURCE_PADDING = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The fields that every stack of Transformer blocks has."""

    vocabulary_size: int  # V, pieces of the tokenizer
    pad_id: int  # the padding token of the vocabulary
    width: int  # D
    feed_forward: int  # F, the inner width of the position-wise network
    heads: int  # H
    head_width: int | None = None  # of each head; D / H where it is None
    # G: heads of keys and values, each read by H / G of queries (Ainslie et al. 2023);
    # H where it is None.
    kv_heads: int | None = later(None)
    # An RMS norm of each query and key (Henry et al. 2020).
    qk_norm: bool = later(False)
    dropout: float = 0.1  # share of values set to zero while training
    max_source_tokens: int = 512  # longer sources are cut and marked as truncated
    positions: str = setting("sinusoidal", "kind of positions", choices=POSITIONS)
    # Buckets of relative positions: the distances of a bucket share a bias per head.
    relative_buckets: int = 32
    # Tokens; all larger distances share the last bucket.
    relative_distance: int = 128
    rotary_base: float = later(10_000.0)  # theta of rotary positions
    # Of their frequencies (Dubey et al. 2024): a divisor, the turns within a length up
    # to which it holds and from which on it does not, and that length; () scales none.
    rotary_scaling: tuple[float, ...] = later(())
    # A letter for each block, as in gllg: those with g read all tokens, those with l
    # `window` of them: itself, half of the others before it and half behind it, or all
    # before it in a decoder. Without letters, all have g.
    reach: str = later("")
    window: int = later(129)
    local_rotary_base: float = later(10_000.0)  # theta of the blocks with l
    # Of the position-wise network.
    activation: str = setting("relu", "of the inner layers", choices=ACTIVATIONS)
    # The activation is multiplied by a second linear layer (Shazeer 2020).
    gated_feed_forward: bool = False
    biases: bool = True  # whether linear layers have a bias
    # Each sublayer reads a norm of its input, and a norm follows the last block (Xiong
    # et al. 2020).
    norm_first: bool = False
    rms_norm: bool = False  # norms scale only (Zhang and Sennrich 2019)
    norm_bias: bool = later(True)  # whether norms that are no RMSNorm have a bias
    norm_epsilon: float = 1e-6  # of every norm
    # With the norm first, whether the attention of the first block reads one too.
    first_norm: bool = later(True)
    # With the norm first, one of the sublayer's output too.
    both_norms: bool = later(False)
    scaled_scores: bool = True  # attention scores over sqrt(head width)
    score_width: int | None = later(None)  # in place of the head width there
    scaled_embedding: bool = True  # embeddings times sqrt(D)
    embedding_norm: bool = False  # a norm after the positions are added (BERT)

    def __post_init__(self) -> None:
        _check_counts(self)
        check_fields(self)
        # JSON has lists.
        object.__setattr__(self, "rotary_scaling", tuple(self.rotary_scaling))
        if self.head_width is not None:
            check_at_least(self, 1, "head_width")
        elif self.width % self.heads:
            next_below = self.width // self.heads * self.heads
            raise UsageError(
                "the width must be a multiple of the number of heads, but "
                f"{self.width} is not one of {self.heads}; "
                f"take {next_below or self.heads} or another number of heads"
            )
        if self.kv_heads and (
            self.heads % self.kv_heads or self.positions == "relative"
        ):
            raise UsageError(
                f"kv_heads must divide heads, and {self.kv_heads} does not divide "
                f"{self.heads}; relative positions have as many as heads"
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
                "relative positions need at least 4 buckets, and a longest distance "
                f"above half as many, not {self.relative_buckets} buckets and "
                f"{self.relative_distance}"
            )

    @property
    def width_of_head(self) -> int:
        """D/H."""
        return self.head_width or self.width // self.heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """The shape of a Transformer encoder."""

    encoder_layers: int
    labels: int = later(0)  # of texts, which the encoder then gives in place of states


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """The shape of a Transformer encoder-decoder.

    The fields of the stack hold for both sides unless `decoder_stack` describes the
    decoder.
    """

    encoder_layers: int
    decoder_layers: int
    decoder_stack: StackConfig | None = None  # of a decoder that differs
    # One softmax goes over the source and the target, with the weights of
    # self-attention (T5Gemma 2), in place of a cross-attention.
    merged_attention: bool = later(False)
    shared_embedding: bool = True  # source and target are pieces of one vocabulary
    # The output layer is the transposed embedding table (Press and Wolf 2017).
    tied_output: bool = True
    scaled_output: bool = False  # a tied output layer reads states times D^-0.5 (T5)
    logits_bias: bool = False  # a bias per piece on the logits of a tied output
    pointer: bool = True  # tokens are copied from the source too (See et al. 2017)
    convolutional_gate: bool = False  # over the encoder's states (Lin et al. 2018)
    max_target_tokens: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pointer and not self.shared_embedding:
            raise UsageError(
                "the pointer copies pieces of the source, so source and target need "
                "one vocabulary; train with `pointer=False`"
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
        """The shape of the encoder alone."""
        stack = _fields_of(StackConfig, self)
        return EncoderConfig(**stack, encoder_layers=self.encoder_layers)

    @property
    def decoder(self) -> StackConfig:
        """The stack of the decoder; its vocabulary is that of the target."""
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
    # The source is a prompt, whose last token stands in place of the start token; a
    # summary may not repeat what the prompt says where it may not repeat itself.
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
    width: int  # D, of embeddings and states
    encoder_layers: int  # each reads in both directions
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
                "the width must be even, half of it for each direction of the "
                f"encoder, not {self.width}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectorConfig:
    """The shape of the network that scores sentences."""

    vector_width: int = 0  # D of the sentence vectors; 0 reads the features alone
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
        _ = self.stack  # refuses heads that cannot be

    @property
    def stack(self) -> StackConfig:
        """The stack of its blocks, which has no vocabulary."""
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
    """Refuses a shape in which one of the numbers is none."""
    names = [field.name for field in dataclasses.fields(config) if field.type is int]
    check_at_least(config, 1, *(name for name in names if name not in _MAY_BE_ZERO))
    if not 0 <= config.dropout < 1:
        raise UsageError(f"dropout is a share from 0 to below 1, not {config.dropout}")


def _fields_of(kind: type[Any], config: Any) -> dict[str, Any]:
    return {
        field.name: getattr(config, field.name) for field in dataclasses.fields(kind)
    }
