"""Loads folders of `precis export` with transformers.

Run as a program of its own, as two frameworks in one process share threads badly:

    python -m support.huggingface_reference TEXTS FOLDER ...

TEXTS is a JSON list of texts. FOLDER.json gets the source ids of each text, the ids
that `generate` writes without the start token, what they decode to, the class of the
network and what transformers said of missing or unexpected tensors.
"""

import json
import sys
from pathlib import Path

BATCH = 8


def reference(folder: str, texts: list[str]) -> dict:
    """What transformers makes of texts with the files of a folder alone."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network, loading = AutoModelForSeq2SeqLM.from_pretrained(
        folder, output_loading_info=True
    )
    network.eval()
    sources, written = [], []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        inputs = tokenizer(batch, truncation=True, padding=True, return_tensors="pt")
        with torch.no_grad():
            sequences = network.generate(**inputs)
        for ids, mask in zip(
            inputs["input_ids"], inputs["attention_mask"], strict=True
        ):
            sources.append(ids[mask.bool()].tolist())
        count = len(sequences) // len(batch)
        rows = sequences[:, 1:].tolist()
        written += [rows[at : at + count] for at in range(0, len(rows), count)]
    return {
        "class": type(network).__name__,
        "sources": sources,
        "written": written,
        "texts": [
            tokenizer.batch_decode(rows, skip_special_tokens=True) for rows in written
        ],
        "loading": {name: sorted(map(str, found)) for name, found in loading.items()},
        "weights": sum(weight.numel() for weight in network.parameters()),
    }


if __name__ == "__main__":
    texts, *folders = sys.argv[1:]
    for folder in folders:
        content = reference(folder, json.loads(Path(texts).read_text()))
        Path(f"{folder}.json").write_text(json.dumps(content))
