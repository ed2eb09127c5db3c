"""Bundles of tiny networks of every layout, for exports to transformers."""

import functools
import json
from pathlib import Path
from typing import Any

from precis.model.bundle.network_bundle import save_bundle
from precis.model.network.architectures import LAYOUTS
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.text.article import Article
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample import generator
from support.plain_network import scramble
from support.small_checkpoint import write_checkpoint, write_tokenizer

SIZES: dict[str, Any] = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "width": 32,
    "feed_forward": 48,
    "heads": 4,
    "max_source_tokens": 60,
    "max_target_tokens": 24,
    "pointer": False,
}


def sample_bodies(count: int) -> list[str]:
    """The bodies of articles of the sample corpus."""
    return [
        Article.from_text(generator.document(500 + index).article).body
        for index in range(count)
    ]


@functools.cache
def sample_tokenizer() -> Tokenizer:
    """A tokenizer of these articles."""
    return Tokenizer(learn(count_words(sample_bodies(40)), size=500))


def save_layout(folder: Path, layout: str, **changes: Any) -> str:
    """Saves a network of a layout whose weights write different summaries of different
    texts.

    Args:
      folder: for the bundle.
      layout: one of LAYOUTS.
      **changes: fields of the network that differ.
    """
    tokenizer = sample_tokenizer()
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        **{**SIZES, **LAYOUTS[layout], **changes},
    )
    network = build_network(config, seed=5)
    scramble(network, seed=3, scale=0.4)
    save_bundle(
        str(folder),
        network=network,
        tokenizer=tokenizer,
        provenance={"command": "train"},
        task_prefixes=("summarize: ",) if layout == "t5" else (),
    )
    return str(folder)


def write_small_checkpoint(folder: Path, kind: str) -> str:
    """Writes a checkpoint of a kind of `small_checkpoint`, with a tokenizer."""
    write_checkpoint(folder, kind=kind)
    return write_tokenizer(folder)


def read_folder(folder: str | Path, name: str) -> dict[str, Any]:
    """The content of a JSON file of a folder."""
    return json.loads((Path(folder) / name).read_text())
