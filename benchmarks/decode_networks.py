"""The networks and the documents that `decode.py` measures with: BART of some sizes
with random weights, in the layout of Hugging Face.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

START, PAD, END, SPECIAL_TOKENS = 2, 1, 2, ("<s>", "<pad>", "</s>", "<unk>")
BEAM_WIDTH, NO_REPEAT_NGRAM = 4, 3
POSITIONS = 1024
WEIGHTS, CONVERTED = "checkpoint", "ctranslate2"  # folders of a size


class Size(NamedTuple):
    """A network of the benchmark and the work it is given."""

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
    "B": Size(12, 6, 768, 3072, 12, 30_000, 400, 100, 32),
}


def source_tokens(size: Size, first: int, count: int) -> np.ndarray:
    """Random documents without special tokens, int64 [B, S]; each depends on its number
    alone.
    """
    rows = [
        np.random.default_rng([0, row]).integers(
            10, size.vocabulary_size, size.source_tokens
        )
        for row in range(first, first + count)
    ]
    return np.stack(rows).astype("int64")


def token_texts(size: Size) -> list[str]:
    """What the tokens are called where an engine wants text."""
    return [
        *SPECIAL_TOKENS,
        *(f"t{token}" for token in range(len(SPECIAL_TOKENS), size.vocabulary_size)),
    ]


def flops(size: Size) -> float:
    """Floating-point operations of a document: twice the products of encoder,
    cross-attention's keys and values, and each step.
    """
    width, feed_forward, source, length = (
        size.width,
        size.feed_forward,
        size.source_tokens,
        size.new_tokens,
    )
    encoder = size.encoder_layers * (
        2 * source * (4 * width**2 + 2 * width * feed_forward) + 4 * source**2 * width
    )
    cross = size.decoder_layers * 2 * source * 2 * width**2
    attention = (
        size.decoder_layers * 4 * (source + length / 2) * width
    )  # to the source, and to half the summary on average
    step = (
        size.decoder_layers * 2 * (6 * width**2 + 2 * width * feed_forward)
        + 2 * width * size.vocabulary_size
        + attention
    )
    return encoder + cross + BEAM_WIDTH * length * step


def make_network(folder: str, size: str, pythons: Mapping[str, str]) -> None:
    """Writes the network of a size, and what CTranslate2 makes of it, unless they are
    there.
    """
    weights, converted = os.path.join(folder, WEIGHTS), os.path.join(folder, CONVERTED)
    if not os.path.exists(os.path.join(weights, "config.json")):
        write_network(weights, SIZES[size])
    if "ctranslate2" in pythons and not os.path.exists(converted):
        aside = (
            converted + ".aside"
        )  # what was interrupted is not taken for what was finished
        program = "import sys; from ctranslate2.converters import TransformersConverter as C; C(sys.argv[1]).convert(sys.argv[2], force=True)"
        subprocess.run(
            [pythons["ctranslate2"], "-c", program, weights, aside],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        os.rename(aside, converted)


def write_network(folder: str, size: Size) -> None:
    """Writes BART with random weights, and with a tokenizer, which CTranslate2's
    converter asks for, in the layout of Hugging Face.
    """
    import safetensors.numpy

    chance = np.random.default_rng(0)
    tensors = {
        name: _initial(name, shape, chance) for name, shape in shapes(size).items()
    }
    os.makedirs(folder, exist_ok=True)
    safetensors.numpy.save_file(
        tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"}
    )
    begin, pad, end, unknown = SPECIAL_TOKENS
    vocabulary = {piece: token for token, piece in enumerate(token_texts(size))}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown},
    }
    names = {
        "bos_token": begin,
        "pad_token": pad,
        "eos_token": end,
        "unk_token": unknown,
    }
    contents: dict[str, Any] = {
        "tokenizer.json": {
            **tokenizer,
            **dict.fromkeys(
                ("normalizer", "pre_tokenizer", "post_processor", "decoder")
            ),
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **names,
        },
        "config.json": {
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
        },
    }
    for (
        file_name,
        content,
    ) in contents.items():  # config.json last: it says that the others are there
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """The tensors of BART and their shapes."""
    width, parts = size.width, dict[str, tuple[int, ...]]()
    parts.update(
        {
            "final_logits_bias": (1, size.vocabulary_size),
            "model.shared.weight": (size.vocabulary_size, width),
        }
    )

    def add(name: str, *shape: int) -> None:
        parts.update({f"{name}.weight": shape, f"{name}.bias": shape[:1]})

    for side, layers in (
        ("encoder", size.encoder_layers),
        ("decoder", size.decoder_layers),
    ):
        parts[f"model.{side}.embed_positions.weight"] = (POSITIONS + 2, width)
        add(f"model.{side}.layernorm_embedding", width)
        for layer in range(layers):
            block = f"model.{side}.layers.{layer}"
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    add(f"{block}.{attention}.{part}", width, width)
                add(f"{block}.{attention}_layer_norm", width)
            add(f"{block}.fc1", size.feed_forward, width)
            add(f"{block}.fc2", width, size.feed_forward)
            add(f"{block}.final_layer_norm", width)
    return parts


def _initial(
    name: str, shape: tuple[int, ...], chance: np.random.Generator
) -> np.ndarray:
    if name.endswith("bias"):
        return np.zeros(shape, "float32")
    return (
        np.ones(shape, "float32")
        if len(shape) == 1
        else chance.normal(0, 0.02, shape).astype("float32")
    )
