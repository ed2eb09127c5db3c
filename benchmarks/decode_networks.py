"""The networks and the documents that `decode.py` measures with: BART of some sizes
with random weights, in the layout of Hugging Face.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
START = 2  # BART begins its targets with the end token
PAD = 1
END = 2
BEAM_WIDTH = 4
NO_REPEAT_NGRAM = 3
POSITIONS = 1024
WEIGHTS = "checkpoint"  # in the folder of a size
CONVERTED = "ctranslate2"
_CONVERT_PROGRAM = """
import sys
from ctranslate2.converters import TransformersConverter
TransformersConverter(sys.argv[1]).convert(sys.argv[2], force=True)
"""


class Size(NamedTuple):
    """A network of the benchmark and its work."""

    encoder_layers: int
    decoder_layers: int
    width: int
    feed_forward: int
    heads: int
    vocabulary_size: int
    source_tokens: int
    new_tokens: int
    documents: int  # unless --documents says otherwise


SIZES = {
    "tiny": Size(1, 1, 16, 32, 2, 200, 24, 8, 32),  # for the test
    "S": Size(4, 4, 256, 1024, 8, 16_000, 400, 100, 64),
    "B": Size(12, 6, 768, 3072, 12, 30_000, 400, 100, 64),
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
    encoder, in the keys and values of cross-attention, and in each step.
    """
    width = size.width
    feed_forward = size.feed_forward
    source = size.source_tokens
    length = size.new_tokens
    encoder = size.encoder_layers * (
        2 * source * (4 * width**2 + 2 * width * feed_forward) + 4 * source**2 * width
    )
    cross = size.decoder_layers * 2 * source * 2 * width**2
    # To the source, and on average to half the summary.
    attention = size.decoder_layers * 4 * (source + length / 2) * width
    step = (
        size.decoder_layers * 2 * (6 * width**2 + 2 * width * feed_forward)
        + 2 * width * size.vocabulary_size
        + attention
    )
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
    """Writes BART with random weights in the layout of Hugging Face, with a tokenizer,
    which CTranslate2's converter needs.
    """
    import safetensors.numpy

    rng = np.random.default_rng(0)
    tensors = {
        name: _initial_values(name, shape, rng) for name, shape in shapes(size).items()
    }
    os.makedirs(folder, exist_ok=True)
    safetensors.numpy.save_file(
        tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"}
    )
    # The configuration comes last: it tells that the other files are complete.
    contents = {
        "tokenizer.json": _tokenizer(size),
        "tokenizer_config.json": _tokenizer_config(),
        "config.json": _network_config(size),
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


def _network_config(size: Size) -> dict[str, Any]:
    return {
        "model_type": "bart",
        "architectures": ["BartForConditionalGeneration"],
        "dtype": "float32",
        "vocab_size": size.vocabulary_size,
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
        "bos_token_id": 0,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "decoder_start_token_id": START,
        "forced_eos_token_id": None,
    }


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """The tensors of BART and their shapes."""
    width = size.width
    tensors: dict[str, tuple[int, ...]] = {
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


def _layer_shapes(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _initial_values(
    name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    if name.endswith("bias"):
        return np.zeros(shape, "float32")
    if len(shape) == 1:  # the scale of a norm
        return np.ones(shape, "float32")
    return rng.normal(0, 0.02, shape).astype("float32")
