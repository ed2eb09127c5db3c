"""The networks and the documents that `decode.py` measures with: BART of some sizes, a
small Qwen3 and a small T5Gemma 2, with random weights, in the layout of Hugging Face.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
BEGIN = 0
PAD = 1
END = 2
START = END  # BART begins its targets with the end token
BEAM_WIDTH = 4
NO_REPEAT_NGRAM = 3
POSITIONS = 1024
WINDOW = 512  # of all blocks but the last of a side of T5Gemma 2, as published
WEIGHTS = "checkpoint"  # in the folder of a size
CONVERTED = "ctranslate2"
_CONVERT_PROGRAM = """
import sys
from ctranslate2.converters import TransformersConverter
TransformersConverter(sys.argv[1]).convert(sys.argv[2], force=True)
"""


Shapes = dict[str, tuple[int, ...]]


class Size(NamedTuple):
    """A network of the benchmark and its work."""

    encoder_layers: int  # 0 of a language model
    decoder_layers: int
    width: int
    feed_forward: int
    heads: int
    vocabulary_size: int
    source_tokens: int
    new_tokens: int
    documents: int  # unless --documents says otherwise
    kind: str = "bart"  # the model_type, a key of _KINDS
    grouped_heads: tuple[int, int] = (0, 0)  # of keys and values, and their width

    @property
    def kv_heads(self) -> int:
        """The heads of keys and values."""
        return self.grouped_heads[0] or self.heads

    @property
    def head_width(self) -> int:
        """The width of each head."""
        return self.grouped_heads[1] or self.width // self.heads


SIZES = {
    "tiny": Size(1, 1, 16, 32, 2, 200, 24, 8, 32),  # for the test
    "S": Size(4, 4, 256, 1024, 8, 16_000, 400, 100, 64),
    "B": Size(12, 6, 768, 3072, 12, 30_000, 400, 100, 64),
    "tiny_qwen3": Size(0, 2, 16, 24, 4, 200, 24, 8, 32, "qwen3", (2, 6)),
    "qwen3": Size(0, 8, 512, 1536, 8, 32_000, 400, 100, 64, "qwen3", (2, 64)),
    "tiny_t5gemma2": Size(2, 2, 16, 24, 4, 200, 24, 8, 32, "t5gemma2", (2, 6)),
    "t5gemma2": Size(6, 6, 512, 1536, 8, 32_000, 400, 100, 64, "t5gemma2", (2, 64)),
}


def source_tokens(size: Size, first: int, count: int) -> np.ndarray:
    """Random documents without special tokens, int64 [B, S]; each depends on its number
    alone.
    """
    rows = []
    for number in range(first, first + count):
        rng = np.random.default_rng([0, number])
        rows.append(rng.integers(10, size.vocabulary_size, size.source_tokens))
    return np.stack(rows).astype("int64")


def token_texts(size: Size) -> list[str]:
    """The tokens as text, for engines that read text."""
    words = range(len(SPECIAL_TOKENS), size.vocabulary_size)
    return [*SPECIAL_TOKENS, *(f"t{token}" for token in words)]


def flops(size: Size) -> float:
    """Floating-point operations of a document: two for each multiplication in the
    encoder, in the keys and values of the source, and in each step.
    """
    width, source, length = size.width, size.source_tokens, size.new_tokens
    queries = size.heads * size.head_width
    keys_values = 2 * width * size.kv_heads * size.head_width
    is_bart = size.kind == "bart"  # others have a gate and no cross-attention
    feed_forward = (2 if is_bart else 3) * width * size.feed_forward
    block = 2 * width * queries + keys_values + feed_forward
    # A language model reads the source with the blocks that write.
    layers = size.encoder_layers or size.decoder_layers
    read = source if size.encoder_layers else source / 2
    encoder = layers * 2 * source * block + 4 * layers * source * read * queries
    decoder = size.decoder_layers
    cross = decoder * 2 * source * keys_values if size.encoder_layers else 0
    if is_bart:
        block += 2 * width * queries
    # To the source, and on average to half the summary.
    attention = decoder * 4 * (source + length / 2) * queries
    step = decoder * 2 * block + 2 * width * size.vocabulary_size + attention
    return encoder + cross + BEAM_WIDTH * length * step


def make_network(folder: str, size: str, pythons: Mapping[str, str]) -> None:
    """Writes the network of a size, and its conversion for CTranslate2, unless they
    exist.
    """
    weights = os.path.join(folder, WEIGHTS)
    converted = os.path.join(folder, CONVERTED)
    if not os.path.exists(os.path.join(weights, "config.json")):
        write_network(weights, SIZES[size])
    if "ctranslate2" in pythons and not os.path.exists(converted):
        aside = converted + ".aside"  # renamed when complete
        subprocess.run(
            [pythons["ctranslate2"], "-c", _CONVERT_PROGRAM, weights, aside],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        os.rename(aside, converted)


def write_network(folder: str, size: Size) -> None:
    """Writes a network with random weights in the layout of Hugging Face, with a
    tokenizer, which CTranslate2's converter needs.
    """
    import safetensors.numpy

    rng = np.random.default_rng(0)
    config, shapes, scale = _KINDS[size.kind]
    tensors = {
        name: _initial_values(name, shape, scale, rng)
        for name, shape in shapes(size).items()
    }
    os.makedirs(folder, exist_ok=True)
    safetensors.numpy.save_file(
        tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"}
    )
    # The configuration comes last: it tells that the other files are complete.
    contents = {
        "tokenizer.json": _tokenizer(size),
        "tokenizer_config.json": _tokenizer_config(),
        "config.json": {
            "model_type": size.kind,
            "dtype": "float32",
            "vocab_size": size.vocabulary_size,
            "bos_token_id": BEGIN,
            "pad_token_id": PAD,
            "eos_token_id": END,
            **config(size),
        },
    }
    for name, content in contents.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def _tokenizer(size: Size) -> dict[str, Any]:
    *_, unknown = SPECIAL_TOKENS
    vocabulary = {piece: token for token, piece in enumerate(token_texts(size))}
    return {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown},
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
    }


def _tokenizer_config() -> dict[str, Any]:
    begin, pad, end, unknown = SPECIAL_TOKENS
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": begin,
        "pad_token": pad,
        "eos_token": end,
        "unk_token": unknown,
    }


def _bart_config(size: Size) -> dict[str, Any]:
    return {
        "architectures": ["BartForConditionalGeneration"],
        "max_position_embeddings": POSITIONS,
        "d_model": size.width,
        "encoder_layers": size.encoder_layers,
        "decoder_layers": size.decoder_layers,
        "encoder_ffn_dim": size.feed_forward,
        "decoder_ffn_dim": size.feed_forward,
        "encoder_attention_heads": size.heads,
        "decoder_attention_heads": size.heads,
        "activation_function": "gelu",
        "normalize_before": False,  # CTranslate2's converter reads it
        "decoder_start_token_id": START,
        "forced_eos_token_id": None,
    }


def _grouped_config(size: Size, layers: int) -> dict[str, Any]:
    """What config.json says of a stack with grouped keys and values."""
    return {
        "max_position_embeddings": POSITIONS,
        "num_hidden_layers": layers,
        "hidden_size": size.width,
        "intermediate_size": size.feed_forward,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.head_width,
    }


def _qwen3_config(size: Size) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        **_grouped_config(size, size.decoder_layers),
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        "tie_word_embeddings": True,
    }


def _t5gemma2_config(size: Size) -> dict[str, Any]:
    def side(layers: int) -> dict[str, Any]:
        return {
            **_grouped_config(size, layers),
            "vocab_size": size.vocabulary_size,
            "query_pre_attn_scalar": size.head_width,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention"] * (layers - 1) + ["full_attention"],
        }

    vision = {"num_hidden_layers": 0, "hidden_size": 2, "num_attention_heads": 1}
    return {
        "architectures": ["T5Gemma2ForConditionalGeneration"],
        "decoder_start_token_id": BEGIN,
        "encoder": {
            "text_config": side(size.encoder_layers),
            "vision_config": {"model_type": "siglip_vision_model", **vision},
        },
        "decoder": side(size.decoder_layers),
    }


def _bart_shapes(size: Size) -> Shapes:
    """The tensors of BART and their shapes."""
    width = size.width
    tensors: Shapes = {
        "final_logits_bias": (1, size.vocabulary_size),
        "model.shared.weight": (size.vocabulary_size, width),
    }
    sides = {"encoder": size.encoder_layers, "decoder": size.decoder_layers}
    for side, layers in sides.items():
        tensors[f"model.{side}.embed_positions.weight"] = (POSITIONS + 2, width)
        tensors |= _layer_shapes(f"model.{side}.layernorm_embedding", width)
        attentions = ["self_attn"]
        if side == "decoder":
            attentions.append("encoder_attn")
        for layer in range(layers):
            block = f"model.{side}.layers.{layer}"
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    name = f"{block}.{attention}.{part}"
                    tensors |= _layer_shapes(name, width, width)
                tensors |= _layer_shapes(f"{block}.{attention}_layer_norm", width)
            tensors |= _layer_shapes(f"{block}.fc1", size.feed_forward, width)
            tensors |= _layer_shapes(f"{block}.fc2", width, size.feed_forward)
            tensors |= _layer_shapes(f"{block}.final_layer_norm", width)
    return tensors


def _layer_shapes(name: str, *shape: int) -> Shapes:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _qwen3_shapes(size: Size) -> Shapes:
    norms = ("input_layernorm", "post_attention_layernorm")
    return {
        "model.embed_tokens.weight": (size.vocabulary_size, size.width),
        **_grouped_shapes("model", size, size.decoder_layers, norms),
    }


def _t5gemma2_shapes(size: Size) -> Shapes:
    sides = {"model.encoder": size.encoder_layers, "model.decoder": size.decoder_layers}
    norms = [
        f"{place}_{sublayer}_layernorm"
        for place in ("pre", "post")
        for sublayer in ("self_attn", "feedforward")
    ]
    tensors: Shapes = {
        "model.encoder.embed_tokens.weight": (size.vocabulary_size, size.width)
    }
    for side, layers in sides.items():
        tensors |= _grouped_shapes(side, size, layers, norms)
    return tensors


def _grouped_shapes(name: str, size: Size, layers: int, norms: Sequence[str]) -> Shapes:
    """The tensors of a stack with grouped keys and values."""
    width, head = size.width, size.head_width
    queries, keys = size.heads * head, size.kv_heads * head
    block: Shapes = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "self_attn.q_norm": (head,),
        "self_attn.k_norm": (head,),
        "mlp.gate_proj": (size.feed_forward, width),
        "mlp.up_proj": (size.feed_forward, width),
        "mlp.down_proj": (width, size.feed_forward),
        **{norm: (width,) for norm in norms},
    }
    tensors: Shapes = {f"{name}.norm.weight": (width,)}
    for layer in range(layers):
        for part, shape in block.items():
            tensors[f"{name}.layers.{layer}.{part}.weight"] = shape
    return tensors


def _initial_values(
    name: str, shape: tuple[int, ...], scale: float, rng: np.random.Generator
) -> np.ndarray:
    if name.endswith("bias"):
        return np.zeros(shape, "float32")
    if len(shape) == 1:  # the scale of a norm
        return np.full(shape, scale, "float32")
    return rng.normal(0, 0.02, shape).astype("float32")


# By model_type: config.json and the tensors of a size, and what norms scale by, as it
# is stored.
_KINDS: Mapping[
    str, tuple[Callable[[Size], dict[str, Any]], Callable[[Size], Shapes], float]
] = {
    "bart": (_bart_config, _bart_shapes, 1.0),
    "qwen3": (_qwen3_config, _qwen3_shapes, 1.0),
    "t5gemma2": (_t5gemma2_config, _t5gemma2_shapes, 0.0),  # less 1
}
