"""The articles that an extractor is trained on: sentence vectors, features and labels,
read from records with oracle labels.

The vectors of each shard are computed once and kept beside the checkpoints:

    training/vectors/<shard>-<fingerprint>.npy   float16 [sentences of the shard, D], in
                                                 the order of the records
"""

import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precis.model import files
from precis.model.extractive.features import features_of_all
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.progress.stages import stage
from precis.model.records.example import read_labelled

_ARTICLES_ENCODED_TOGETHER = 64


class TrainingArticle(NamedTuple):
    """An article, cut after the sentences that the extractor reads together.

    Attributes:
      vectors: float16 [N, D]; D is 0 without an encoder.
      features: float32 [N, F].
      labels: float32 [N], 1 for a sentence of the oracle summary.
      sentences: the texts of the sentences, for validation; empty for training.
      highlights: the reference summary, for validation; empty for training.
    """

    vectors: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    sentences: tuple[str, ...] = ()
    highlights: str = ""


class VectorStore(NamedTuple):
    """Computes the vectors of sentences and keeps them in files.

    Attributes:
      encoder: reads the sentences.
      folder: of the files.
      fingerprint: of all that the vectors depend on.
    """

    encoder: SentenceEncoder
    folder: str
    fingerprint: str


def read_articles(
    shards: Sequence[str],
    *,
    max_sentences: int,
    vector_store: VectorStore | None,
    keep_text: bool,
    stride: int = 1,
) -> Iterator[TrainingArticle]:
    """The articles of shards that have sentences, in order.

    Args:
      shards: local TFRecord files.
      max_sentences: longer articles are cut.
      vector_store: gives the vectors; without it they have no numbers.
      keep_text: whether articles keep their sentences and highlights.
      stride: of every so many articles of a shard, the first is read.
    """
    for path in shards:
        records = list(read_labelled(path))
        documents = [record.sentences[:max_sentences] for record in records]
        if vector_store is None:
            vectors = [np.zeros((len(texts), 0), np.float16) for texts in documents]
        else:
            vectors = shard_vectors(vector_store, path, documents)
        rows = list(zip(records, documents, vectors, strict=True))[::stride]
        features = features_of_all([record.sentences for record, _, _ in rows])
        for (record, texts, own_vectors), own_features in zip(
            rows, features, strict=True
        ):
            if not record.sentences:
                continue
            labels = np.zeros(len(record.sentences), np.float32)
            labels[list(record.oracle)] = 1.0
            yield TrainingArticle(
                vectors=own_vectors,
                features=own_features[:max_sentences],
                labels=labels[:max_sentences],
                sentences=texts if keep_text else (),
                highlights=record.highlights if keep_text else "",
            )


def shard_vectors(
    store: VectorStore, shard: str, documents: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """The vectors of a shard's sentences, float16 [N, D] for each document.

    They are read from the file of an earlier run, or computed and written to it.
    """
    shard_name = shard.rsplit("/", 1)[-1]
    path = files.join(store.folder, f"{shard_name}-{store.fingerprint[:16]}.npy")
    if not files.exists(path):
        content = io.BytesIO()
        np.save(content, _compute_vectors(store.encoder, documents), allow_pickle=False)
        files.write_bytes(path, content.getvalue())
    vectors = np.load(io.BytesIO(files.read_bytes(path)), allow_pickle=False)
    ends = np.cumsum([len(document) for document in documents])
    return np.split(vectors, ends[:-1])


def _compute_vectors(
    encoder: SentenceEncoder, documents: Sequence[Sequence[str]]
) -> np.ndarray:
    """The vectors of all sentences of all documents, float16 [sentences, D]."""
    batches = [
        documents[start : start + _ARTICLES_ENCODED_TOGETHER]
        for start in range(0, len(documents), _ARTICLES_ENCODED_TOGETHER)
    ]
    vectors = [np.zeros((0, encoder.width), np.float16)]
    with stage("encode", total=len(documents)) as encoding:
        for batch in batches:
            vectors += [each.astype(np.float16) for each in encoder.vectors(batch)]
            encoding.advance(len(batch))
    return np.concatenate(vectors)
