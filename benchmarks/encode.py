"""The speed of making records of articles of 700 words, in one thread.

    python benchmarks/encode.py [--documents 1000] [--runs 5]

prints `name value unit` lines: each stage by itself (reading, normalising, encoding and
writing), the whole chain as a worker of `precis prepare` does it, tf.text alone, their
ratio, the stage that bounds the chain, and the encoding by Hugging Face's tokenizers
where they are installed. All take turns; rates are medians over the runs. The corpus is
made from a fixed seed.
"""

import argparse
import datetime
import gc
import importlib.util
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from precis.model import files
from precis.model.records.example import Example, frame, serialise
from precis.model.text.normalization import normalise
from precis.model.tokenization.folder import TOKENIZER_FOLDER
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import JOINER, LINE_BREAK, SPACE, Tokenizer
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.prepare.encoding_pass import EncodeWorker
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.vocabulary_pass import DUPLICATES_FILE, ScanWorker
from precis.pipelines.run.accounts import total_counts
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress

_ARTICLE_WORDS = 700
_HIGHLIGHTS_WORDS = 50
_DIFFERENT_WORDS = 30_000
_MAX_SOURCE_TOKENS = 512
_MAX_TARGET_TOKENS = 64
_VOCABULARY_SIZE = 16_000
_BATCH = 64


class CorpusRecord(NamedTuple):
    """One record of the benchmark's corpus."""

    document_id: str
    article: str
    highlights: str


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description=(
            "Documents a second, stage by stage, "
            "from JSON lines to TFRecord, in one thread."
        )
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
        help="runs whose median is printed (default: 5)",
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "articles.jsonl")
        write_articles(path, options.documents)
        for line in measure(path, options.documents, options.runs):
            print(line, flush=True)


def write_articles(path: str, documents: int) -> None:
    """Writes a corpus of invented words with frequencies that fall as 1 / rank."""
    draw = random.Random(7)
    words = _invented_words(draw)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            highlights = [
                _invented_text(draw, words, _HIGHLIGHTS_WORDS // 3) for _ in range(3)
            ]
            record = {
                "id": f"{number:040x}",
                "article": _invented_text(draw, words, _ARTICLE_WORDS),
                "highlights": "\n".join(highlights),
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _invented_words(draw: random.Random) -> list[str]:
    """Different words of one to four syllables."""
    syllables = [
        first + vowel + last
        for first in "bcdfghlmnprstv"
        for vowel in "aeiou"
        for last in ("", "n", "r", "st", "l")
    ]
    words = [
        "".join(draw.choices(syllables, k=1 + rank % 4))
        for rank in range(3 * _DIFFERENT_WORDS)
    ]
    return list(dict.fromkeys(words))[:_DIFFERENT_WORDS]


def _invented_text(draw: random.Random, words: Sequence[str], length: int) -> str:
    """Sentences of 18 words, with capitals, numbers, commas and quotation marks."""
    weights = [1 / (rank + 10) for rank in range(len(words))]
    parts = []
    for index, word in enumerate(draw.choices(words, weights, k=length)):
        chance = draw.random()
        if index % 18 == 0 or chance < 0.08:
            word = word.capitalize()
        if chance > 0.98:
            word = f"{draw.randrange(3000)}"
        if 0.10 < chance < 0.11:
            word = f"“{word}”"
        if index % 18 == 17:
            word += "."
        elif chance > 0.93:
            word += ","
        parts.append(word)
    return " ".join(parts)


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
    yield (
        "article_tokens "
        f"{statistics.mean(example.source_tokens for example in examples):.0f} tokens"
    )
    output = path + ".tfrecord"
    stages: dict[str, Callable[[], Any]] = {
        "read": lambda: read(path),
        "normalise": lambda: normalise_rows(rows),
        "encode": lambda: encode_rows(tokenizer, clean),
        "write": lambda: write(examples, output),
    }
    wholes = {
        "whole_chain": encode_pass(path, tokenizer, path + ".records"),
        "tf_text_alone": _tf_text_alone(tokenizer, clean),
    }
    if importlib.util.find_spec("tokenizers"):
        wholes["peer_tokenizers"] = _peer(vocabulary, clean)
    else:
        yield "peer_tokenizers skipped (not installed)"
    seconds = _median_seconds(stages | wholes, runs)
    rates = {name: documents / each for name, each in seconds.items()}
    for name, rate in rates.items():
        yield f"{name} {rate:.0f} documents/s"
    chain = rates["whole_chain"]
    yield f"tf_text_alone_to_whole_chain {rates['tf_text_alone'] / chain:.2f} times"
    slowest = min(stages, key=lambda name: rates[name])
    yield f"bound_by_{slowest} {100 * chain / rates[slowest]:.0f} % of the chain's time"


def read(path: str) -> list[CorpusRecord]:
    """Parses JSON lines."""
    with open(path, "rb") as file:
        return [
            CorpusRecord(content["id"], content["article"], content["highlights"])
            for content in map(json.loads, file)
        ]


def normalise_rows(rows: Sequence[CorpusRecord]) -> list[CorpusRecord]:
    """Normalises both texts."""
    return [
        CorpusRecord(row.document_id, normalise(row.article), normalise(row.highlights))
        for row in rows
    ]


def encode_rows(tokenizer: Tokenizer, rows: Sequence[CorpusRecord]) -> list[Example]:
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
            example = Example(
                row.document_id,
                source[:_MAX_SOURCE_TOKENS],
                target[:_MAX_TARGET_TOKENS],
                len(source),
                row.highlights,
            )
            examples.append(example)
    return examples


def write(examples: Sequence[Example], path: str) -> None:
    """Serialises, frames and writes."""
    with open(path, "wb") as file:
        file.writelines(map(frame, serialise(examples)))


def encode_pass(path: str, tokenizer: Tokenizer, output: str) -> Callable[[], Any]:
    """The second pass of `precis prepare` over the file, as one task of a worker.

    It reads the training pairs of the first pass and publishes a shard.
    """
    corpus = CorpusOptions(corpus=f"jsonl:{path}", task_bytes=1 << 40)
    options = PrepareOptions(
        output=output,
        max_source_tokens=_MAX_SOURCE_TOKENS,
        max_target_tokens=_MAX_TARGET_TOKENS,
    )
    job = Job(
        output,
        "records",
        "0" * 64,
        "0" * 16,
        datetime.datetime.now(datetime.UTC),
        1,
    )
    (task,) = list_tasks(corpus)
    tokenizer.save(files.join(output, TOKENIZER_FOLDER))
    no_duplicates = pa.table({"place": pa.array([], pa.int64())})
    path = files.join(output, DUPLICATES_FILE)
    os.makedirs(os.path.dirname(path))
    pq.write_table(no_duplicates, path)
    letters = DeadLetterWriter("", task=0, run_id="")
    ScanWorker(corpus, options, job).run(task, TaskProgress(task.size_bytes), letters)
    worker = EncodeWorker(corpus, options, job)
    worker.load()

    def run() -> None:
        result = worker.run(task, TaskProgress(task.size_bytes), letters)
        counts = total_counts(result.file_counts)
        assert counts["written"] == counts["read"] > 0

    return run


def _tf_text_alone(
    tokenizer: Tokenizer, rows: Sequence[CorpusRecord]
) -> Callable[[], Any]:
    """FastWordpiece of tf.text on the same texts, given as tensors.

    It is the upper bound of the speed of the chain.
    """
    import tensorflow_text

    texts = [
        _with_visible_spaces(text)
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
        token_out_type=tf.int32,  # pyright: ignore[reportArgumentType]  # The same class.
    )
    return lambda: [operation.tokenize(batch).flat_values.numpy() for batch in batches]  # pyright: ignore[reportOptionalCall]  # Tensors are eager.


def _with_visible_spaces(text: str) -> str:
    return SPACE + re.sub(" +", f" {SPACE}", text.replace("\n", f" {LINE_BREAK} "))


def _peer(vocabulary: Sequence[str], rows: Sequence[CorpusRecord]) -> Callable[[], Any]:
    """Hugging Face tokenizers with the same vocabulary and cuts, on the same texts."""
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
        _with_visible_spaces(text)
        for row in rows
        for text in (row.article, row.highlights)
    ]
    os.environ["RAYON_NUM_THREADS"] = "1"
    return lambda: [
        encoding.ids for encoding in peer.encode_batch(texts, add_special_tokens=False)
    ]


def _median_seconds(
    works: Mapping[str, Callable[[], Any]], runs: int
) -> dict[str, float]:
    """The median of the seconds of each, which take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            gc.collect()
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in seconds.items()}


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # The figures are for one core.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    main(sys.argv[1:])
