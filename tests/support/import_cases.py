"""The random checkpoints of `import_reference.py` and how each is searched."""

from collections.abc import Mapping
from typing import Any, NamedTuple

VOCABULARY = 83


class Case(NamedTuple):
    """A random checkpoint and how it is searched.

    Attributes:
      kind: its model_type.
      shape: settings of its configuration.
      generation: its generation settings.
      runs: the settings of each search. An empty run has those of the checkpoint. None
          means that a setting is absent.
      end: the amount added to the logit of the end token, so that some summaries end
          before the maximum length.
      source_tokens, target_tokens: the lengths of the inputs.
      bfloat16: whether it is saved in bfloat16.
      is_untied: whether the output layer is separate from the embedding table.
      files: changes to its config.json after it was saved.
    """

    kind: str
    shape: Mapping[str, Any]
    generation: Mapping[str, Any]
    runs: tuple[Mapping[str, Any], ...]
    end: float = 3.0
    source_tokens: int = 24
    target_tokens: int = 9
    bfloat16: bool = False
    is_untied: bool = False
    files: Mapping[str, Any] = {}


def sizes(
    encoder: tuple[int, int, int], decoder: tuple[int, int, int]
) -> dict[str, Any]:
    """The settings of BART and PEGASUS for the sizes of each side.

    Args:
      encoder, decoder: layers, feed-forward width and heads.
    """
    names = ("layers", "ffn_dim", "attention_heads")
    sides = {"encoder": encoder, "decoder": decoder}
    settings = {
        f"{side}_{name}": value
        for side, values in sides.items()
        for name, value in zip(names, values, strict=True)
    }
    return {"max_position_embeddings": 40, "d_model": 32, **settings}


# By default `generate` of BART forces the end token at the maximum length.
OPEN = {"forced_eos_token_id": None}

# The generation settings of facebook/bart-large-cnn, google/pegasus-cnn_dailymail and,
# for summaries, of google-t5/t5-base, at the size of these networks.
NGRAMS = {"early_stopping": True, "no_repeat_ngram_size": 3}
BART = {"num_beams": 4, "max_length": 22, "min_length": 6, "length_penalty": 2.0}
BART |= {**NGRAMS, "forced_bos_token_id": 0, "forced_eos_token_id": 2}
PEGASUS = {"num_beams": 8, "max_length": 24, "min_length": 8, "length_penalty": 0.8}
PEGASUS |= {"forced_eos_token_id": 1}
T5 = {
    "num_beams": 4,
    "max_length": 24,
    "min_length": 7,
    "length_penalty": 2.0,
    **NGRAMS,
}


def search(beams: int, length: int, **settings: Any) -> dict[str, Any]:
    """The settings of a search of so many beams and tokens."""
    return {"num_beams": beams, "max_length": length, **settings}


GREEDY = search(1, 26, no_repeat_ngram_size=2, **OPEN)
BEAM = search(
    4, 18, length_penalty=2.0, no_repeat_ngram_size=3, forced_eos_token_id=1
) | {"early_stopping": False}
N_BEST = search(
    4, 16, length_penalty=0.5, min_length=8, early_stopping="never", **OPEN
) | {"num_return_sequences": 3}
LONG = search(
    2, 34, length_penalty=1.0, early_stopping=True, num_return_sequences=2, **OPEN
)

T5_SHAPE = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_heads": 4}
T5_SHAPE |= {"num_layers": 2, "num_decoder_layers": 2}
# Few buckets and a short longest distance: the sources reach beyond it, and every
# bucket is met.
NEAR = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
TASK = {
    "task_specific_params": {
        "summarization": {"prefix": "summarize: ", **T5, "num_beams": 3},
        "translation": {"prefix": "no: "},
    }
}

SCALED = {"scale_embedding": True}
RELU = {"activation_function": "relu"}
ODD = {"d_model": 27}
BUCKETS = ("relative_attention_num_buckets", "relative_attention_max_distance")
# The heads together are wider than the network, and the sides differ.
WIDE = {"d_kv": 12, "num_heads": 5, "num_layers": 3, "num_decoder_layers": 1}
WIDE |= {"layer_norm_epsilon": 1e-3, BUCKETS[0]: 16, BUCKETS[1]: 20}
FLAN = {"d_kv": 6, "num_heads": 3, "num_decoder_layers": 1}
FLAN |= {"feed_forward_proj": "gated-gelu"}
UNTIED = {"tie_word_embeddings": False}
SILU = {"num_layers": 3, "feed_forward_proj": "gated-silu", **UNTIED}
FIRST = {"early_stopping": False}
SOME = {"num_beams": 4, "max_new_tokens": 13, "min_new_tokens": 6, **OPEN, **FIRST}


def gemma(kinds: str, window: int, heads: tuple[int, int, int], **more: int) -> Any:
    """The settings of a side of T5Gemma 2.

    Args:
      kinds: a letter for each layer: l for those that read a window.
      window: its length.
      heads: of queries, of keys and values, and their width.
      **more: other settings.
    """
    names = ("num_attention_heads", "num_key_value_heads", "head_dim")
    types = {"l": "sliding_attention", "g": "full_attention"}
    return {
        **dict(zip(names, heads, strict=True)),
        **{"vocab_size": VOCABULARY, "hidden_size": 24, "intermediate_size": 20},
        **{"num_hidden_layers": len(kinds), "sliding_window": window},
        "layer_types": [types[kind] for kind in kinds],
        **{"initializer_range": 0.4, **more},
    }


VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
VISION |= {"num_attention_heads": 2, "image_size": 16, "patch_size": 8}
SIGHT = {"vision_config": {**VISION, "model_type": "siglip_vision_model"}}
SIGHT |= {"mm_tokens_per_image": 4}
UNFORCED = {"forced_bos_token_id": None, "forced_eos_token_id": None}

CHECKPOINTS: dict[str, Case] = {
    "bart": Case(
        *("bart", sizes((2, 64, 4), (2, 64, 4)), BART),
        runs=(
            {},
            search(1, 18, no_repeat_ngram_size=0, repetition_penalty=1.3, **OPEN),
            search(4, 15, early_stopping=False, num_return_sequences=2),
            search(4, 15, length_penalty=-1.0, early_stopping="never", **OPEN),
            search(5, 34, length_penalty=1.0, early_stopping="never", **OPEN),
        ),
    ),
    "bart_lopsided": Case(
        *("bart", {**sizes((3, 48, 2), (1, 80, 8)), **RELU}, BART),
        end=1.0,
        runs=(
            search(5, 16, repetition_penalty=0.8, min_length=10, **OPEN)
            | {"length_penalty": 0.0},
            search(4, 12, suppress_tokens=[5, 9, 11, 30, 31, 32, 60], **OPEN)
            | {"num_return_sequences": 4},
        ),
    ),
    "bart_untied": Case(
        *("bart", sizes((1, 40, 4), (2, 56, 2)), BART),
        is_untied=True,
        runs=(
            search(1, 20, repetition_penalty=1.3, suppress_tokens=[4, 8, 15, 16, 23]),
            SOME,
            search(5, 14, forced_bos_token_id=7, early_stopping=True),
        ),
    ),
    "pegasus": Case(
        *("pegasus", {**sizes((2, 64, 4), (2, 64, 4)), **RELU, **SCALED}, PEGASUS),
        end=8.0,
        runs=({}, GREEDY, N_BEST),
    ),
    "t5": Case(
        *("t5", {**T5_SHAPE, **NEAR}, T5), ({}, GREEDY, N_BEST), target_tokens=30
    ),
    "t5_wide": Case(
        *("t5", {**T5_SHAPE, **WIDE}, T5), ({},), target_tokens=30, files=TASK
    ),
    # The buckets as published: the last ones of both sides are met.
    "t5_buckets": Case(
        *("t5", T5_SHAPE, T5),
        source_tokens=160,
        target_tokens=150,
        runs=(
            {**LONG, "max_length": 140, "min_length": 134, "no_repeat_ngram_size": 2},
        ),
    ),
    # As the published files are: config.json says that the output is not tied, and
    # nothing of scaling.
    "flan": Case(
        *("t5", {**T5_SHAPE, **NEAR, **FLAN}, T5),
        is_untied=True,
        target_tokens=30,
        runs=({}, BEAM),
        files={**UNTIED, "scale_decoder_outputs": None, **TASK},
    ),
    # As transformers writes it today: config.json says that the output is tied and not
    # scaled.
    "flan_silu": Case(
        *("t5", {**T5_SHAPE, **NEAR, **SILU}, T5),
        is_untied=True,
        bfloat16=True,
        runs=({**BEAM, "early_stopping": "never"},),
    ),
    "mt5": Case(
        *("mt5", {**T5_SHAPE, **NEAR, "d_kv": 4}, T5), is_untied=True, runs=({},)
    ),
    # Of an odd width, and with more layers of the decoder. Two of the searches ask for
    # more tokens than they may write: nothing ends before that.
    "pegasus_odd": Case(
        *("pegasus", {**sizes((1, 40, 3), (3, 41, 9)), **ODD, **SCALED}, PEGASUS),
        end=8.0,
        runs=(
            {"no_repeat_ngram_size": 2},
            search(3, 12, min_length=30, no_repeat_ngram_size=2, **OPEN),
            search(1, 9, min_length=9, no_repeat_ngram_size=1, **OPEN),
        ),
    ),
    # Windows of even and odd lengths, shorter and longer than the text.
    "t5gemma2": Case(
        "t5gemma2",
        {
            "encoder": {
                "text_config": gemma("lgl", 4, (3, 1, 6), query_pre_attn_scalar=7),
                **SIGHT,
            },
            "decoder": gemma("llg", 5, (4, 2, 10), query_pre_attn_scalar=10),
        },
        {**BART, **UNFORCED},
        end=1.0,
        runs=(
            {},
            search(1, 20, repetition_penalty=1.3),
            search(3, 16, min_length=9, early_stopping="never", length_penalty=0.5)
            | {"num_return_sequences": 3},
        ),
    ),
    "t5gemma2_far": Case(
        "t5gemma2",
        {
            "encoder": {"text_config": gemma("l", 100, (6, 3, 4)), **SIGHT},
            "decoder": gemma("lg", 100, (4, 4, 8), intermediate_size=33),
        },
        # As in published ones, which are still searched.
        {**BART, **UNFORCED, "do_sample": True},
        end=0.0,
        runs=(search(4, 12, repetition_penalty=1.5, length_penalty=0.0),),
    ),
}
