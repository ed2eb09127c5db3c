"""A corpus of every kind of line, and what `precis summarize` wrote of it."""

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from precis.model.bundle.network_bundle import save_bundle
from precis.model.network.config import TransformerConfig
from precis.model.text.article import Article
from precis.model.text.document import STANDARD, Document, TextSettings
from precis.model.text.normalization import normalise
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import Window, WindowSummarizer
from support.corpus_records import story

MAX_SOURCE_TOKENS = 40  # two length buckets
SHORT = (
    "Rain fell on Monday.\r\n\n \tNobody   came,\u00a0it was cold.  "
    "\u201cWhy?\u201d she asked."
)
# In the order of the corpus: each line and whether it is written.
LINES = [
    (story(0), True),
    ({"id": "short", "article": SHORT}, True),
    ({"article": "(CNN) -- " + SHORT, "highlights": None}, True),
    ("{broken", False),
    ({"id": "marks", "article": "?! \u2026 --", "highlights": ""}, True),
    ({"id": "empty", "article": " \n"}, False),
    ({"id": "credit", "article": "(CNN) -- "}, False),
    *[(story(index), True) for index in range(1, 12)],
    (b'{"id": "x", "article": "caf\xe9"}', False),
    *[
        ({"id": f"{number:02} words", "article": "rain " * number + "fell ."}, True)
        for number in range(1, 9)
    ],
    (story(0), True),  # it is summarized once and has a row of its own
]
WRITTEN = [line for line, is_written in LINES if is_written]


def id_of(line):
    return line.get("id") or Article.from_text(line["article"]).content_sha256


def rows_of(folder):
    """The rows of a run, in the order of the corpus."""
    rows = ds.dataset(Path(folder) / "data").to_table().to_pylist()
    return sorted(rows, key=place_of)


def place_of(row):
    return row["source_file"], int(row["source_position"].split()[-1])


def manifest_of(folder):
    return json.loads((Path(folder) / "manifest.json").read_bytes())


def settings_of(*, language: str | None = None, **flags: Any) -> SummarySettings:
    """The settings that flags give; no document counts as too short."""
    text = TextSettings(language=language)
    return read_settings({"min_source_words": 0, **flags}, text)


def articles_of(lines, text: TextSettings = STANDARD) -> list[Article]:
    """Lines as the articles of a task."""
    documents = [
        Document(line.get("id", ""), "", line["article"], line.get("highlights"))
        for line in lines
    ]
    return [Article(document, text) for document in documents]


def summarized(lines, **flags: Any) -> Window:
    """The only window of lines."""
    settings = settings_of(**flags)
    worker = WindowSummarizer(settings)
    worker.load()
    (window,) = worker.summarize(articles_of(lines, settings.text))
    worker.close()
    return window


def first_rows(lines, **flags: Any) -> list[dict[str, Any]]:
    """The rows of lines, without the id of their settings."""
    return [{**row, "settings_id": ""} for row in summarized(lines, **flags).rows]


def learn_tokenizer():
    """The tokenizer of the corpus and of some more stories."""
    stories = list(map(story, range(20)))
    articles = [SHORT, *(each["article"] for each in stories)]
    texts = [Article.from_text(article).body for article in articles]
    texts += [normalise(each["highlights"]) for each in stories]
    return Tokenizer(learn(count_words(texts), size=500))


def save_network(folder, tokenizer):
    """Writes a bundle with a network of one layer that has learned nothing."""
    # Imported here because TensorFlow takes seconds, and not every test needs it.
    from precis.model.network.build import build_network

    shape = {"width": 16, "feed_forward": 16, "heads": 2}
    shape |= {"encoder_layers": 1, "decoder_layers": 1}
    limits = {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 8}
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        **shape,
        **limits,
    )
    network = build_network(config, seed=9)
    save_bundle(str(folder), network=network, tokenizer=tokenizer, provenance={})
