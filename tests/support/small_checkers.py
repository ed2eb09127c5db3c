"""Bundles of tiny models that say whether a text supports another."""

from pathlib import Path

import numpy as np

from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from support import small_encoder_checkpoint
from support.small_checkpoint import VOCABULARY, write_checkpoint, write_tokenizer
from support.small_encoder_checkpoint import WIDTH, write_encoder

LENGTH = 48  # tokens of the longest text
LABELLED = {"architectures": ["RobertaForSequenceClassification"]}


def head() -> dict[str, np.ndarray]:
    """The tensors of three labels."""
    rng = np.random.default_rng(0)
    shapes = {"dense": (WIDTH, WIDTH), "out_proj": (3, WIDTH)}
    return {
        f"classifier.{name}.{leaf}": rng.normal(size=size).astype("float32")
        for name, shape in shapes.items()
        for leaf, size in (("weight", shape), ("bias", shape[:1]))
    }


def write_checker(folder: Path, kind: str) -> str:
    """Imports a T5, or a RoBERTa with three labels; returns its bundle."""
    checkpoint, bundle = folder / "checkpoint", str(folder / "bundle")
    if kind == "t5":
        write_checkpoint(checkpoint, kind=kind)
    else:
        sizes = {"vocab_size": VOCABULARY, "max_position_embeddings": LENGTH + 2}
        encoder = small_encoder_checkpoint.tensors(kind)
        rng = np.random.default_rng(9)
        for name, rows in zip(("word", "position"), sizes.values(), strict=True):
            table = rng.normal(size=(rows, WIDTH)).astype("float32")
            encoder[f"embeddings.{name}_embeddings.weight"] = table
        stored = {f"roberta.{name}": tensor for name, tensor in encoder.items()}
        labels = {"id2label": {str(label): f"LABEL_{label}" for label in range(3)}}
        settings = {**LABELLED, **labels, **sizes}
        write_encoder(checkpoint, kind, {**stored, **head()}, settings)
    write_tokenizer(checkpoint)
    import_checkpoint(checkpoint=checkpoint, output=bundle, max_source_tokens=LENGTH)
    return bundle
