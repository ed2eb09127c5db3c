"""What transformers makes of random BART checkpoints, for `test_import_parity.py`.

It is a program of its own: PyTorch's compiler and TensorFlow cannot be loaded into one process everywhere.

    python tests/bart_reference.py FOLDER

writes for each checkpoint FOLDER/NAME (config.json, model.safetensors, ...) what `reference.npz` and `runs.json` beside it say of it, and
for the tokenizer FOLDER/tokenizer what `ids.json` in it says.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from small_checkpoint import write_tokenizer

DOCUMENTS, TARGET_LENGTH = 56, 9
SMALL = {"max_position_embeddings": 40, "vocab_size": 83, "d_model": 32, "dropout": 0.1}
# The shapes and how each checkpoint is saved; what is not given is as BART has it: gelu, tied, not scaled.
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "plain": {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "heads": (4, 4)},
    "lopsided": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 80,
        "heads": (2, 8),
        "relu": True,
        "end": 1.0,
    },
    "untied": {"encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 56, "heads": (4, 2), "untied": True},
    "scaled": {"encoder_layers": 1, "decoder_layers": 3, "encoder_ffn_dim": 64, "decoder_ffn_dim": 32, "heads": (8, 4), "scaled": True},
    "half": {"encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "heads": (4, 4), "bfloat16": True},
}
# The settings each checkpoint is searched with. `generate` of BART forces the end at the maximum length unless it is told not to.
OPEN = {"forced_eos_token_id": None}
RUNS: dict[str, list[dict[str, Any]]] = {
    "plain": [
        {},  # what the checkpoint itself says
        {"num_beams": 1, "max_length": 16, **OPEN},
        {"num_beams": 1, "max_length": 18, "min_length": 9, "no_repeat_ngram_size": 2},
        {"num_beams": 1, "max_length": 18, "no_repeat_ngram_size": 0, "repetition_penalty": 1.3, **OPEN},
        {"num_beams": 2, "max_length": 12, "no_repeat_ngram_size": 0, **OPEN},
        {"num_beams": 4, "max_length": 15, "length_penalty": 0.5, "num_return_sequences": 4, **OPEN},
        {"num_beams": 4, "max_length": 15, "length_penalty": 2.0, "early_stopping": False, "num_return_sequences": 2},
        {"num_beams": 4, "max_length": 15, "length_penalty": -1.0, "early_stopping": "never", "num_return_sequences": 2, **OPEN},
        {"num_beams": 5, "max_length": 34, "length_penalty": 1.0, "early_stopping": "never", "no_repeat_ngram_size": 3, **OPEN},
    ],
    "lopsided": [
        {},
        {"num_beams": 2, "max_length": 14, "length_penalty": 2.0, "early_stopping": "never", **OPEN},
        {"num_beams": 4, "max_length": 14, "min_length": 8, "length_penalty": 1.0, "early_stopping": True, "num_return_sequences": 3},
        {"num_beams": 5, "max_length": 16, "repetition_penalty": 1.3, "no_repeat_ngram_size": 0, "num_return_sequences": 5, **OPEN},
        {"num_beams": 5, "max_length": 16, "repetition_penalty": 0.8, "min_length": 10, "length_penalty": 0.0, **OPEN},
        {"num_beams": 4, "max_length": 12, "suppress_tokens": [5, 9, 11, 30, 31, 32, 60], "num_return_sequences": 4, **OPEN},
    ],
    "untied": [
        {},
        {"num_beams": 1, "max_length": 20, "repetition_penalty": 1.3, "suppress_tokens": [4, 8, 15, 16, 23, 42]},
        {"num_beams": 4, "max_new_tokens": 13, "min_new_tokens": 6, "no_repeat_ngram_size": 3, "early_stopping": False, **OPEN},
        {"num_beams": 4, "forced_bos_token_id": None, "max_length": 14, "length_penalty": -1.0, "early_stopping": False, **OPEN},
        {"num_beams": 5, "forced_bos_token_id": 7, "forced_eos_token_id": 2, "max_length": 14, "early_stopping": True},
    ],
    "scaled": [
        {},
        {"num_beams": 2, "max_length": 20, "length_penalty": 0.5, "early_stopping": True, "num_return_sequences": 2, **OPEN},
        {"num_beams": 4, "max_length": 20, "length_penalty": 2.0, "min_length": 12, "no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
        {"num_beams": 5, "max_length": 31, "length_penalty": -1.0, "early_stopping": True, "num_return_sequences": 5, **OPEN},
    ],
    "half": [{}, {"num_beams": 4, "max_length": 12, "num_return_sequences": 4, **OPEN}],
}
# The generation settings of facebook/bart-large-cnn, at the size of these networks.
GENERATION = {
    "num_beams": 4,
    "max_length": 22,
    "min_length": 6,
    "length_penalty": 2.0,
    "early_stopping": True,
    "no_repeat_ngram_size": 3,
    "forced_bos_token_id": 0,
    "forced_eos_token_id": 2,
}


def make_model(name: str, seed: int) -> Any:
    """A random network with every weight different: also the norms, the biases and the bias of the logits."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    shape = dict(CHECKPOINTS[name])
    heads = shape.pop("heads")
    end = shape.pop("end", 3.0)
    is_relu, is_untied, is_scaled = (shape.pop(key, False) for key in ("relu", "untied", "scaled"))
    shape.pop("bfloat16", None)
    torch.manual_seed(seed)
    config = BartConfig(
        **SMALL,
        **shape,
        encoder_attention_heads=heads[0],
        decoder_attention_heads=heads[1],
        activation_function="relu" if is_relu else "gelu",
        scale_embedding=is_scaled,
        tie_word_embeddings=not is_untied,
        init_std=0.3,
    )
    model = BartForConditionalGeneration(config).eval()
    for key, value in GENERATION.items():
        setattr(model.generation_config, key, value)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            if weight.ndim == 1:
                weight.copy_(0.3 * torch.randn_like(weight) + ("norm" in path and path.endswith("weight")))
            if "encoder_attn.out_proj" in path:
                weight.mul_(4.0)  # so that what is written depends on what is read
        if is_untied:  # transformers has a table for each then, and networks here one for both
            model.model.decoder.embed_tokens.weight.copy_(model.model.encoder.embed_tokens.weight)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 2] += end  # so that some summaries end by themselves
    return model


def inputs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sources int64 [B, S] of different lengths, padded, and targets int64 [B, T] that begin with the start token."""
    rng = np.random.default_rng(seed)
    source = np.ones((DOCUMENTS, 24), "int64")
    for row in source:
        length = rng.integers(3, 25)
        row[:length] = [0, *rng.integers(3, SMALL["vocab_size"], length - 2), 2]
    target = rng.integers(3, SMALL["vocab_size"], (DOCUMENTS, TARGET_LENGTH))
    target[:, 0] = 2
    return source, target


def write_reference(folder: Path, name: str, seed: int) -> None:
    """Saves a checkpoint and what transformers makes of it."""
    import torch
    from transformers import BartForConditionalGeneration

    model = make_model(name, seed)
    if CHECKPOINTS[name].get("bfloat16"):
        model.to(torch.bfloat16)
    # In several files where that makes several.
    model.save_pretrained(folder, max_shard_size="40KB" if name == "scaled" else "1GB")
    model = BartForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    source, target = inputs(seed)
    source_ids, mask = torch.tensor(source), torch.tensor(source != 1).long()
    with torch.no_grad():
        whole = model(input_ids=source_ids, attention_mask=mask, decoder_input_ids=torch.tensor(target))
        runs = [_search(model, source_ids, mask, settings) for settings in RUNS[name]]
    np.savez(folder / "reference.npz", source=source, target=target, states=whole.encoder_last_hidden_state, logits=whole.logits)
    (folder / "runs.json").write_text(json.dumps(runs))


def _search(model: Any, source: Any, mask: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The sequences [B * N] of one run without their start token, and their scores: null where the search is greedy."""
    # A setting of None is one that is not there; `generate` takes None for "as the checkpoint says".
    kept = {key: getattr(model.generation_config, key) for key in settings if settings[key] is None}
    for key in kept:
        setattr(model.generation_config, key, None)
    given = {key: value for key, value in settings.items() if value is not None}
    found = model.generate(
        input_ids=source, attention_mask=mask, **given, do_sample=False, return_dict_in_generate=True, output_scores=True
    )
    for key, value in kept.items():
        setattr(model.generation_config, key, value)
    scores = found.sequences_scores.tolist() if "sequences_scores" in found else None
    return {"settings": settings, "sequences": found.sequences[:, 1:].tolist(), "scores": scores}


# Texts to be cut into tokens, and the length they are cut at.
TEXTS, CUT = ["Rain fell on Monday.", "", "  Two spaces,\nthe café and 東京 \U0001f600.", "A <mask> and </s>", "Rain went on " * 9], 12


def write_tokens(folder: Path) -> None:
    """Trains a tokenizer and saves what transformers makes of the texts with it: their ids, whole and cut, and the text of the ids."""
    from transformers import BartTokenizer

    write_tokenizer(folder, as_definition=False)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps({**vocabulary, "<mask>": len(vocabulary)}))  # the vocabulary of BART ends with it
    tokenizer = BartTokenizer.from_pretrained(folder)
    whole, cut = tokenizer(TEXTS)["input_ids"], tokenizer(TEXTS, truncation=True, max_length=CUT)["input_ids"]
    texts = tokenizer.batch_decode(whole, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    (folder / "ids.json").write_text(json.dumps({"whole": whole, "cut": cut, "texts": texts}))


if __name__ == "__main__":
    write_tokens(Path(sys.argv[1]) / "tokenizer")
    for number, checkpoint in enumerate(CHECKPOINTS):
        write_reference(Path(sys.argv[1]) / checkpoint, checkpoint, seed=number)
