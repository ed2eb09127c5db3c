"""Random models that check claims, and the probabilities of support that transformers
computes with them, as the code of MiniCheck and AlignScore does.

    cd tests && python -m support.checker_reference FOLDER

reads FOLDER/pairs.json, of a chunk and a line each, and writes the checkpoints
FOLDER/NAME and FOLDER/probabilities.json, for `test_checkpoint_parity.py`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from support.import_reference import FLAN, T5_SHAPE
from support.small_checkpoint import VOCABULARY, write_tokenizer

_BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_BERT |= {"intermediate_size": 48, "max_position_embeddings": 514}
_BERT |= {"vocab_size": VOCABULARY, "initializer_range": 0.3}
# The model_type and the configuration of each checkpoint.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("t5", {**T5_SHAPE, **FLAN, "decoder_start_token_id": 0}),
    "alignscore": ("roberta", {**_BERT, "num_labels": 3}),
    "minicheck": ("roberta", {**_BERT, "id2label": {0: "0", 1: "1"}}),
}


def write_pieces(folder: Path, texts: list[str]) -> int:
    """Writes a tokenizer like that of T5, in which 0 begins with the token 3 and 1 is
    the token 209; returns the number of its tokens.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["<pad>", "</s>", "<unk>"]
    letters = sorted({letter for text in [*texts, "01"] for letter in text} - {" "})
    words = sorted({f"▁{word}" for text in texts for word in text.split()} - {"▁1"})
    pieces = [*special, "▁", *letters, *words]
    pieces.insert(209, "▁1")
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    return len(pieces)


def probabilities(folder: Path, pairs: list[list[str]]) -> list[float]:
    """Saves a checkpoint; returns the probability of support in each pair."""
    import torch
    from transformers import (
        AutoConfig,
        AutoModelForSeq2SeqLM,
        AutoModelForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    folder.mkdir()
    kind, shape = SHAPES[folder.name]
    model_class: Any = AutoModelForSequenceClassification
    if kind == "t5":
        model_class = AutoModelForSeq2SeqLM
        shape["vocab_size"] = write_pieces(folder, sum(pairs, []))
    else:
        write_tokenizer(folder)
    torch.manual_seed(1)
    model = model_class.from_config(AutoConfig.for_model(kind, **shape)).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    found = []
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:  # norms and biases
                weight += 0.3 * torch.randn_like(weight)
        for chunk, line in pairs:
            if kind == "t5":
                texts = (f"predict: {chunk}</s>{line}",)
                start = {"decoder_input_ids": torch.tensor([[0]])}
            else:
                is_pair = folder.name == "alignscore"
                texts, start = (chunk, line) if is_pair else (f"{chunk}</s>{line}",), {}
            ids = tokenizer(*texts, return_tensors="pt")["input_ids"]
            logits = model(input_ids=ids, **start).logits
            logits = logits[0, 0, [3, 209]] if kind == "t5" else logits[0]
            support = 0 if folder.name == "alignscore" else 1
            found.append(float(logits.softmax(-1)[support]))
    model.save_pretrained(folder)
    return found


if __name__ == "__main__":
    root = Path(sys.argv[1])
    read = json.loads((root / "pairs.json").read_text())
    made = {name: probabilities(root / name, read) for name in SHAPES}
    (root / "probabilities.json").write_text(json.dumps(made))
