"""What it costs to make records: reading, normalising, encoding and writing articles of
700 words, in one thread.

    python benchmarks/encode.py [--documents 1000] [--runs 5]

prints `name value unit` lines: each stage by itself, the whole chain as a worker of
    `precis prepare` does it, tf.text alone, their ratio,
and the stage that bounds the chain.
Rates are medians over the runs, on one corpus that is made anew from a fixed seed each
time.
"""

import argparse
import datetime
import gc
import importlib.util
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from precis.model import files
from precis.model.records.example import Example, serialise
from precis.model.records.tfrecord import frame
from precis.model.text.normalization import normalise
from precis.model.tokenization.folder import TOKENIZER_FOLDER
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import JOINER, Tokenizer, make_spaces_visible
from precis.pipelines.corpus.source import CorpusOptions, list_tasks
from precis.pipelines.options import PrepareOptions
from precis.pipelines.prepare import EncodeTask
from precis.pipelines.tasks import TASKS_FOLDER, Job
from precis.pipelines.vocabulary_pass import scan_path

_ARTICLE_WORDS, _HIGHLIGHTS_WORDS, _DIFFERENT_WORDS = 700, 50, 30_000
_MAX_SOURCE_TOKENS, _MAX_TARGET_TOKENS = 512, 64
_VOCABULARY_SIZE = 16_000
_BATCH = 64


class Row(NamedTuple):
    """One record of the benchmark's corpus."""

    document_id: str
    article: str
    highlights: str


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description="Documents a second, stage by stage, from JSON lines to TFRecord, in one thread."
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=1000,
        help="articles of 700 words (default: 1000)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=5,
        help="runs of which the median counts (default: 5)",
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "articles.jsonl")
        write_articles(path, options.documents)
        for line in measure(path, options.documents, options.runs):
            print(line, flush=True)


def write_articles(path: str, documents: int) -> None:
    """Writes a corpus of made-up words, their frequencies falling as 1 / rank, with
    sentences, capitals, numbers and quotes.
    """
    chance = random.Random(7)
    syllables = [
        first + vowel + last
        for first in "bcdfghlmnprstv"
        for vowel in "aeiou"
        for last in ("", "n", "r", "st", "l")
    ]
    words = list(
        {
            "".join(chance.choices(syllables, k=1 + rank % 4)): None
            for rank in range(3 * _DIFFERENT_WORDS)
        }
    )[:_DIFFERENT_WORDS]
    weights = [1 / (rank + 10) for rank in range(len(words))]

    def text(length: int) -> str:
        parts = []
        for index, word in enumerate(chance.choices(words, weights, k=length)):
            draw = chance.random()
            word = word.capitalize() if index % 18 == 0 or draw < 0.08 else word
            word = f"{chance.randrange(3000)}" if draw > 0.98 else word
            word = f"“{word}”" if 0.10 < draw < 0.11 else word
            parts.append(
                word + ("." if index % 18 == 17 else "," if draw > 0.93 else "")
            )
        return " ".join(parts)

    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            highlights = "\n".join(text(_HIGHLIGHTS_WORDS // 3) for _ in range(3))
            row = {
                "id": f"{number:040x}",
                "article": text(_ARTICLE_WORDS),
                "highlights": highlights,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def measure(path: str, documents: int, runs: int) -> Iterator[str]:
    """The lines of the report."""
    rows = read(path)
    clean = normalise_rows(rows)
    counts = count_words(
        text for row in clean for text in (row.article, row.highlights)
    )
    started = time.perf_counter()
    vocabulary = learn(counts, size=_VOCABULARY_SIZE)
    yield f"learn_vocabulary {time.perf_counter() - started:.1f} s"
    started = time.perf_counter()
    tokenizer = Tokenizer(vocabulary)
    examples = encode_rows(tokenizer, clean)
    yield f"build_tokenizer_and_first_use {time.perf_counter() - started:.2f} s"
    yield f"vocabulary {len(vocabulary)} pieces"
    yield f"article_tokens {statistics.mean(example.source_tokens for example in examples):.0f} tokens"
    output = path + ".tfrecord"
    stages: dict[str, Callable[[], Any]] = {
        "read": lambda: read(path),
        "normalise": lambda: normalise_rows(rows),
        "encode": lambda: encode_rows(tokenizer, clean),
        "write": lambda: write(examples, output),
    }
    rates = {
        name: documents / _median_seconds(stage, runs) for name, stage in stages.items()
    }
    for name, rate in rates.items():
        yield f"{name} {rate:.0f} documents/s"
    chain = documents / _median_seconds(
        encode_pass(path, tokenizer, path + ".records"), runs
    )
    yield f"whole_chain {chain:.0f} documents/s"
    alone = documents / _median_seconds(_tf_text_alone(tokenizer, clean), runs)
    yield f"tf_text_alone {alone:.0f} documents/s"
    yield f"tf_text_alone_to_whole_chain {alone / chain:.2f} times"
    slowest = min(rates, key=lambda name: rates[name])
    yield f"bound_by_{slowest} {100 * chain / rates[slowest]:.0f} % of the chain's time"
    yield from _peer(vocabulary, clean, documents, runs)


def read(path: str) -> list[Row]:
    """Parses JSON lines."""
    with open(path, "rb") as file:
        return [
            Row(content["id"], content["article"], content["highlights"])
            for content in map(json.loads, file)
        ]


def normalise_rows(rows: Sequence[Row]) -> list[Row]:
    """Normalises both texts."""
    return [
        Row(row.document_id, normalise(row.article), normalise(row.highlights))
        for row in rows
    ]


def encode_rows(tokenizer: Tokenizer, rows: Sequence[Row]) -> list[Example]:
    """Encodes both texts, a batch at a time, and cuts them."""
    examples = []
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        tokens = tokenizer.encode(
            [row.article for row in batch] + [row.highlights for row in batch]
        )
        for row, source, target in zip(
            batch, tokens[: len(batch)], tokens[len(batch) :], strict=True
        ):
            cut = source[:_MAX_SOURCE_TOKENS], target[:_MAX_TARGET_TOKENS]
            examples.append(Example(row.document_id, *cut, len(source), row.highlights))
    return examples


def write(examples: Sequence[Example], path: str) -> None:
    """Serialises, frames and writes."""
    with open(path, "wb") as file:
        file.writelines(frame(serialise(example)) for example in examples)


def encode_pass(path: str, tokenizer: Tokenizer, output: str) -> Callable[[], Any]:
    """The second pass of `precis prepare` over the file as one task, as a worker does
    it: from the corpus to a published shard.
    """
    corpus = CorpusOptions(corpus=f"jsonl:{path}", task_bytes=1 << 40)
    options = PrepareOptions(
        output=output,
        max_source_tokens=_MAX_SOURCE_TOKENS,
        max_target_tokens=_MAX_TARGET_TOKENS,
    )
    job = Job(output, "0" * 64, "0" * 16, datetime.datetime.now(datetime.UTC), 1)
    (task,) = list_tasks(corpus)
    tokenizer.save(files.join(output, TOKENIZER_FOLDER))
    files.write_json(scan_path(job), {"duplicates": {}})
    worker = EncodeTask(corpus, options, job)
    worker.setup()

    def run() -> None:
        (receipt,) = worker.process(task)
        files.remove(
            files.join(output, TASKS_FOLDER, "00000.json")
        )  # or the next run would find it done
        assert receipt["counts"]["written"] == receipt["counts"]["read"] > 0

    return run


def _tf_text_alone(tokenizer: Tokenizer, rows: Sequence[Row]) -> Callable[[], Any]:
    """tf.text's FastWordpiece on the same texts, already tensors: what no code around
    it can beat.
    """
    import tensorflow_text

    texts = [
        make_spaces_visible(text)
        for row in rows
        for text in (row.article, row.highlights)
    ]
    batches = [
        tf.constant(texts[start : start + 2 * _BATCH])
        for start in range(0, len(texts), 2 * _BATCH)
    ]
    operation = tensorflow_text.FastWordpieceTokenizer(
        list(tokenizer.vocabulary),
        suffix_indicator=JOINER,
        max_bytes_per_word=1 << 16,
        token_out_type=tf.int32,
    )
    return lambda: [operation.tokenize(batch).flat_values.numpy() for batch in batches]


def _peer(
    vocabulary: Sequence[str], rows: Sequence[Row], documents: int, runs: int
) -> Iterator[str]:
    """Hugging Face tokenizers with the same vocabulary and cuts, where it is installed."""
    if importlib.util.find_spec("tokenizers") is None:
        yield "peer_tokenizers skipped (not installed)"
        return
    import tokenizers

    peer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {piece: token for token, piece in enumerate(vocabulary)},
            unk_token="[UNK]",
            max_input_chars_per_word=1 << 16,
        )
    )
    peer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    texts = [
        make_spaces_visible(text)
        for row in rows
        for text in (row.article, row.highlights)
    ]
    os.environ["RAYON_NUM_THREADS"] = "1"

    def encode() -> list[list[int]]:
        return [
            encoding.ids
            for encoding in peer.encode_batch(texts, add_special_tokens=False)
        ]

    yield f"peer_tokenizers {documents / _median_seconds(encode, runs):.0f} documents/s"


def _median_seconds(work: Callable[[], Any], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        gc.collect()
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # The figures are for one core.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    main(sys.argv[1:])
