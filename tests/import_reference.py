"""What transformers makes of random checkpoints that write summaries, for
`test_import_parity.py`.

It is a program of its own: PyTorch's compiler and TensorFlow cannot be loaded into one
    process everywhere.

    python tests/import_reference.py FOLDER

writes for each checkpoint FOLDER/NAME (config.json, model.safetensors, ...) what
`reference.npz` and `runs.json` beside it say of it, and for the tokenizer
FOLDER/tokenizer what `ids.json` in it says.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from small_checkpoint import write_tokenizer

DOCUMENTS, VOCABULARY = 56, 83


class Case(NamedTuple):
    """A random checkpoint and how it is searched.

    Attributes:
      kind: its model_type.
      shape: settings of its configuration.
      generation: settings it is published with.
      runs: settings it is searched with; an empty run is what the checkpoint itself
          says. None is a setting that is not there.
      end: how much the end token is favoured, so that some summaries end by themselves.
      source_tokens, target_tokens: of the inputs.
      bfloat16: whether it is saved in that.
      is_untied: whether the output layer is no embedding table.
      files: what is changed in its config.json after it was saved.
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
    """The layers, the feed-forward width and the heads of each side, as BART and
    PEGASUS name them.
    """
    names = ("layers", "ffn_dim", "attention_heads")
    sides = {"encoder": encoder, "decoder": decoder}
    own = {
        f"{side}_{name}": value
        for side, values in sides.items()
        for name, value in zip(names, values, strict=True)
    }
    return {"max_position_embeddings": 40, "d_model": 32, **own}


# The generation settings of facebook/bart-large-cnn, of google/pegasus-cnn_dailymail
# and, for summaries, of google-t5/t5-base, at the size of these networks.
BART = {
    "num_beams": 4,
    "max_length": 22,
    "min_length": 6,
    "length_penalty": 2.0,
    "early_stopping": True,
    "no_repeat_ngram_size": 3,
    "forced_bos_token_id": 0,
    "forced_eos_token_id": 2,
}
PEGASUS = {
    "num_beams": 8,
    "max_length": 24,
    "min_length": 8,
    "length_penalty": 0.8,
    "forced_eos_token_id": 1,
}
T5 = {
    "num_beams": 4,
    "max_length": 24,
    "min_length": 7,
    "length_penalty": 2.0,
    "early_stopping": True,
    "no_repeat_ngram_size": 3,
}
# `generate` of BART forces the end at the maximum length unless it is told not to.
OPEN = {"forced_eos_token_id": None}
GREEDY = {"num_beams": 1, "max_length": 26, "no_repeat_ngram_size": 2, **OPEN}
BEAM = {
    "num_beams": 4,
    "max_length": 18,
    "length_penalty": 2.0,
    "no_repeat_ngram_size": 3,
    "forced_eos_token_id": 1,
    "early_stopping": False,
}
N_BEST = {
    "num_beams": 4,
    "max_length": 16,
    "length_penalty": 0.5,
    "min_length": 8,
    "num_return_sequences": 3,
    "early_stopping": "never",
    **OPEN,
}
LONG = {
    "num_beams": 2,
    "max_length": 34,
    "length_penalty": 1.0,
    "early_stopping": True,
    "num_return_sequences": 2,
    **OPEN,
}
T5_SHAPE = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_heads": 4,
    "num_layers": 2,
    "num_decoder_layers": 2,
}
# Few buckets and a short longest distance: the sources reach beyond it, and every
# bucket is met.
NEAR = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
TASK = {
    "task_specific_params": {
        "summarization": {"prefix": "summarize: ", **T5, "num_beams": 3},
        "translation": {"prefix": "no: "},
    }
}

CHECKPOINTS: dict[str, Case] = {
    "bart": Case(
        kind="bart",
        shape=sizes((2, 64, 4), (2, 64, 4)),
        generation=BART,
        runs=(
            {},
            {"num_beams": 1, "max_length": 16, **OPEN},
            {
                "num_beams": 1,
                "max_length": 18,
                "min_length": 9,
                "no_repeat_ngram_size": 2,
            },
            {
                "num_beams": 1,
                "max_length": 18,
                "no_repeat_ngram_size": 0,
                "repetition_penalty": 1.3,
                **OPEN,
            },
            {"num_beams": 2, "max_length": 12, "no_repeat_ngram_size": 0, **OPEN},
            {
                "num_beams": 4,
                "max_length": 15,
                "length_penalty": 0.5,
                "num_return_sequences": 4,
                **OPEN,
            },
            {
                "num_beams": 4,
                "max_length": 15,
                "length_penalty": 2.0,
                "early_stopping": False,
                "num_return_sequences": 2,
            },
            {
                "num_beams": 4,
                "max_length": 15,
                "length_penalty": -1.0,
                "early_stopping": "never",
                "num_return_sequences": 2,
                **OPEN,
            },
            {
                "num_beams": 5,
                "max_length": 34,
                "length_penalty": 1.0,
                "early_stopping": "never",
                "no_repeat_ngram_size": 3,
                **OPEN,
            },
        ),
    ),
    "bart_lopsided": Case(
        kind="bart",
        shape={**sizes((3, 48, 2), (1, 80, 8)), "activation_function": "relu"},
        generation=BART,
        end=1.0,
        runs=(
            {},
            {
                "num_beams": 2,
                "max_length": 14,
                "length_penalty": 2.0,
                "early_stopping": "never",
                **OPEN,
            },
            {
                "num_beams": 4,
                "max_length": 14,
                "min_length": 8,
                "length_penalty": 1.0,
                "early_stopping": True,
                "num_return_sequences": 3,
            },
            {
                "num_beams": 5,
                "max_length": 16,
                "repetition_penalty": 1.3,
                "no_repeat_ngram_size": 0,
                "num_return_sequences": 5,
                **OPEN,
            },
            {
                "num_beams": 5,
                "max_length": 16,
                "repetition_penalty": 0.8,
                "min_length": 10,
                "length_penalty": 0.0,
                **OPEN,
            },
            {
                "num_beams": 4,
                "max_length": 12,
                "suppress_tokens": [5, 9, 11, 30, 31, 32, 60],
                "num_return_sequences": 4,
                **OPEN,
            },
        ),
    ),
    "bart_untied": Case(
        kind="bart",
        shape=sizes((1, 40, 4), (2, 56, 2)),
        generation=BART,
        is_untied=True,
        runs=(
            {},
            {
                "num_beams": 1,
                "max_length": 20,
                "repetition_penalty": 1.3,
                "suppress_tokens": [4, 8, 15, 16, 23, 42],
            },
            {
                "num_beams": 4,
                "max_new_tokens": 13,
                "min_new_tokens": 6,
                "no_repeat_ngram_size": 3,
                "early_stopping": False,
                **OPEN,
            },
            {
                "num_beams": 4,
                "forced_bos_token_id": None,
                "max_length": 14,
                "length_penalty": -1.0,
                "early_stopping": False,
                **OPEN,
            },
            {
                "num_beams": 5,
                "forced_bos_token_id": 7,
                "forced_eos_token_id": 2,
                "max_length": 14,
                "early_stopping": True,
            },
        ),
    ),
    "bart_scaled": Case(
        kind="bart",
        shape={**sizes((1, 64, 8), (3, 32, 4)), "scale_embedding": True},
        generation=BART,
        runs=(
            {},
            {
                "num_beams": 2,
                "max_length": 20,
                "length_penalty": 0.5,
                "early_stopping": True,
                "num_return_sequences": 2,
                **OPEN,
            },
            {
                "num_beams": 4,
                "max_length": 20,
                "length_penalty": 2.0,
                "min_length": 12,
                "no_repeat_ngram_size": 2,
                "repetition_penalty": 1.3,
            },
            {
                "num_beams": 5,
                "max_length": 31,
                "length_penalty": -1.0,
                "early_stopping": True,
                "num_return_sequences": 5,
                **OPEN,
            },
        ),
    ),
    "bart_half": Case(
        kind="bart",
        shape=sizes((2, 64, 4), (1, 64, 4)),
        generation=BART,
        bfloat16=True,
        runs=(
            {},
            {"num_beams": 4, "max_length": 12, "num_return_sequences": 4, **OPEN},
        ),
    ),
    "pegasus": Case(
        kind="pegasus",
        shape={
            **sizes((2, 64, 4), (2, 64, 4)),
            "activation_function": "relu",
            "scale_embedding": True,
        },
        generation=PEGASUS,
        end=8.0,
        runs=({}, GREEDY, BEAM, N_BEST),
    ),
    "pegasus_lopsided": Case(
        kind="pegasus",
        shape={**sizes((3, 48, 2), (1, 80, 8)), "activation_function": "gelu_new"},
        generation=PEGASUS,
        end=12.0,
        runs=({**GREEDY, "min_length": 9}, LONG),
    ),
    "pegasus_untied": Case(
        kind="pegasus",
        shape={**sizes((1, 40, 8), (2, 56, 4)), "scale_embedding": True},
        generation=PEGASUS,
        is_untied=True,
        end=8.0,
        runs=({}, {**BEAM, "early_stopping": True, "length_penalty": -1.0}),
    ),
    "t5": Case(
        kind="t5",
        shape={**T5_SHAPE, **NEAR},
        generation=T5,
        runs=({}, GREEDY, BEAM, N_BEST),
        target_tokens=30,
    ),
    # The heads together are wider than the network, and the sides differ.
    "t5_wide": Case(
        kind="t5",
        shape={
            **T5_SHAPE,
            **{
                "d_kv": 12,
                "num_heads": 5,
                "num_layers": 3,
                "num_decoder_layers": 1,
                "layer_norm_epsilon": 1e-3,
            },
            **{
                "relative_attention_num_buckets": 16,
                "relative_attention_max_distance": 20,
            },
        },
        generation=T5,
        target_tokens=30,
        runs=({}, LONG),
        files=TASK,
    ),
    # The buckets as published: the last ones of both sides are met.
    "t5_buckets": Case(
        kind="t5",
        shape=T5_SHAPE,
        generation=T5,
        source_tokens=160,
        target_tokens=150,
        runs=(
            {**GREEDY, "repetition_penalty": 1.3},
            {**LONG, "max_length": 140, "min_length": 134, "no_repeat_ngram_size": 2},
        ),
    ),
    # As the published files are: config.json says that the output is not tied, and
    # nothing of scaling.
    "flan": Case(
        kind="t5",
        shape={
            **T5_SHAPE,
            **NEAR,
            "d_kv": 6,
            "num_heads": 3,
            "num_decoder_layers": 1,
            "feed_forward_proj": "gated-gelu",
        },
        generation=T5,
        is_untied=True,
        target_tokens=30,
        runs=({}, GREEDY, BEAM, N_BEST),
        files={"tie_word_embeddings": False, "scale_decoder_outputs": None, **TASK},
    ),
    # As transformers writes it today: config.json says that the output is tied and not
    # scaled.
    "flan_silu": Case(
        kind="t5",
        shape={
            **T5_SHAPE,
            **NEAR,
            "num_layers": 3,
            "feed_forward_proj": "gated-silu",
            "tie_word_embeddings": False,
        },
        generation=T5,
        is_untied=True,
        bfloat16=True,
        runs=({}, {**BEAM, "early_stopping": "never"}),
    ),
    "flan_tied": Case(
        kind="t5",
        shape={
            **T5_SHAPE,
            **NEAR,
            "d_kv": 16,
            "num_heads": 2,
            "feed_forward_proj": "gelu",
            "tie_word_embeddings": False,
        },
        generation=T5,
        runs=(
            {**BEAM, "early_stopping": True, "min_length": 9},
            {**N_BEST, "early_stopping": False, "length_penalty": -1.0},
        ),
    ),
    "mt5": Case(
        kind="mt5",
        shape={**T5_SHAPE, **NEAR, "d_kv": 4},
        generation=T5,
        is_untied=True,
        runs=({}, N_BEST),
    ),
}


def make_model(case: Case, seed: int) -> Any:
    """A random network with every weight different: also the norms, the biases and the
    bias of the logits.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    torch.manual_seed(seed)
    is_t5 = case.kind in ("t5", "mt5")
    # T5 is tied in every version of today, whatever its file says; then the output
    # layer that is stored is another.
    tied = (
        {}
        if is_t5
        else {
            "tie_word_embeddings": not case.is_untied,
            "init_std": 0.3 if case.kind == "bart" else 0.4,
        }
    )
    config = AutoConfig.for_model(
        case.kind, vocab_size=VOCABULARY, **case.shape, **tied
    )
    config.decoder_start_token_id = 2 if case.kind == "bart" else 0
    model = AutoModelForSeq2SeqLM.from_config(config).eval()
    for key, value in {
        **case.generation,
        "decoder_start_token_id": config.decoder_start_token_id,
    }.items():
        setattr(model.generation_config, key, value)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            if weight.ndim == 1:
                scale = (
                    0.05 if case.kind == "pegasus" and path.endswith("bias") else 0.3
                )
                weight.copy_(
                    scale * torch.randn_like(weight)
                    + ("norm" in path and path.endswith("weight"))
                )
            if "relative_attention_bias" in path:
                weight.copy_(torch.randn_like(weight))
            if "encoder_attn.out_proj" in path or "EncDecAttention.o" in path:
                weight.mul_(4.0)  # so that what is written depends on what is read
            if (
                case.kind != "bart"
                and path.startswith(("model.decoder", "decoder"))
                and path.endswith(("fc2.weight", "wo.weight"))
            ):
                weight.mul_(
                    8.0
                    # the norm comes first: a tied output layer would find the last token
                    # again
                )
            if is_t5 and path == "shared.weight":
                weight.mul_(3.0)  # few ties
        if is_t5 and case.is_untied:
            model.lm_head.weight = torch.nn.Parameter(
                torch.randn_like(model.lm_head.weight)
            )
        elif (
            case.is_untied
        ):  # transformers has a table for each then, and networks here one for both
            model.model.decoder.embed_tokens.weight.copy_(
                model.model.encoder.embed_tokens.weight
            )
        _favour_the_end(model, case)
    return model


def _favour_the_end(model: Any, case: Case) -> None:
    """Raises the logit of the end token, so that some summaries end by themselves."""
    import torch

    if case.kind in ("bart", "pegasus"):
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, model.config.eos_token_id] += case.end
        return
    # T5 has no bias there: what all pieces have in common is in every state, and the
    # end answers to more of it.
    common = torch.randn(model.config.d_model)
    model.shared.weight += common
    model.lm_head.weight[model.config.eos_token_id] += case.end * common


def inputs(
    case: Case, seed: int, *, pad: int, start: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sources int64 [B, S] of different lengths, padded, and targets int64 [B, T] that
    begin with the start token.
    """
    rng = np.random.default_rng(seed)
    source = np.full((DOCUMENTS, case.source_tokens), pad, "int64")
    for row in source:
        length = rng.integers(3, case.source_tokens + 1)
        first = [0] if case.kind == "bart" else []
        row[:length] = [
            *first,
            *rng.integers(3, VOCABULARY, length - 1 - len(first)),
            end,
        ]
    target = rng.integers(3, VOCABULARY, (DOCUMENTS, case.target_tokens))
    target[:, 0] = start
    return source, target


def write_reference(folder: Path, case: Case, seed: int) -> None:
    """Saves a checkpoint and what transformers makes of it."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    model = make_model(case, seed)
    if case.bfloat16:
        model.to(torch.bfloat16)
    # In several files where that makes several.
    model.save_pretrained(folder, max_shard_size="40KB" if seed % 4 == 3 else "1GB")
    config = {**json.loads((folder / "config.json").read_text()), **case.files}
    (folder / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if value is not None})
    )
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = model.generation_config
    source, target = inputs(
        case,
        seed,
        pad=ids.pad_token_id,
        start=ids.decoder_start_token_id,
        end=ids.eos_token_id,
    )
    source_ids, mask = (
        torch.tensor(source),
        torch.tensor(source != ids.pad_token_id).long(),
    )
    with torch.no_grad():
        whole = model(
            input_ids=source_ids,
            attention_mask=mask,
            decoder_input_ids=torch.tensor(target),
        )
        runs = [
            _search(model, source_ids, mask, settings, case) for settings in case.runs
        ]
    np.savez(
        folder / "reference.npz",
        source=source,
        target=target,
        states=whole.encoder_last_hidden_state,
        logits=whole.logits,
    )
    (folder / "runs.json").write_text(json.dumps(runs))


def _search(
    model: Any, source: Any, mask: Any, settings: Mapping[str, Any], case: Case
) -> dict[str, Any]:
    """The sequences [B * N] of one run without their start token, and their scores:
    null where the search is greedy.
    """
    # A setting of None is one that is not there; `generate` takes None for "as the
    # checkpoint says".
    kept = {
        key: getattr(model.generation_config, key)
        for key in settings
        if settings[key] is None
    }
    for key in kept:
        setattr(model.generation_config, key, None)
    given = {key: value for key, value in settings.items() if value is not None}
    if not settings and case.files.get(
        "task_specific_params"
    ):  # what the checkpoint itself says of summaries
        given = {
            key: value
            for key, value in case.files["task_specific_params"][
                "summarization"
            ].items()
            if key != "prefix"
        }
    found = model.generate(
        input_ids=source,
        attention_mask=mask,
        **given,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    for key, value in kept.items():
        setattr(model.generation_config, key, value)
    scores = found.sequences_scores.tolist() if "sequences_scores" in found else None
    return {
        "settings": settings,
        "sequences": found.sequences[:, 1:].tolist(),
        "scores": scores,
    }


# Texts to be cut into tokens, and the length they are cut at.
TEXTS, CUT = (
    [
        "Rain fell on Monday.",
        "",
        "  Two spaces,\nthe café and 東京 \U0001f600.",
        "A <mask> and </s>",
        "Rain went on " * 9,
    ],
    12,
)


def write_tokens(folder: Path) -> None:
    """Trains a tokenizer and saves what transformers makes of the texts with it: their
    ids, whole and cut, and the text of the ids.
    """
    from transformers import BartTokenizer

    write_tokenizer(folder, as_definition=False)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(
        json.dumps({**vocabulary, "<mask>": len(vocabulary)})
    )  # the vocabulary of BART ends with it
    tokenizer = BartTokenizer.from_pretrained(folder)
    whole, cut = (
        tokenizer(TEXTS)["input_ids"],
        tokenizer(TEXTS, truncation=True, max_length=CUT)["input_ids"],
    )
    texts = tokenizer.batch_decode(
        whole, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    (folder / "ids.json").write_text(
        json.dumps({"whole": whole, "cut": cut, "texts": texts})
    )


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # what is this small is slower on several
    write_tokens(Path(sys.argv[1]) / "tokenizer")
    for number, (name, case) in enumerate(CHECKPOINTS.items()):
        write_reference(Path(sys.argv[1]) / name, case, seed=number)
