"""Tests of what the readers of a corpus count while they are read."""

import csv
import gzip
import itertools
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions

DOCUMENTS = 400


def write_corpus(folder, scheme):
    """A corpus of `DOCUMENTS` documents of different lengths; returns its address.

    The texts are made of random words, so that they compress evenly and not too well.
    """
    draw = random.Random(5)
    texts = [
        " ".join(f"{draw.getrandbits(40):x}" for _ in range(draw.randrange(20, 200)))
        for _ in range(DOCUMENTS)
    ]
    kind, name = scheme.split(":")
    path = folder / name
    if kind == "text":
        for number, text in enumerate(texts):
            (folder / f"{number:03d}.txt").write_text(text)
        return f"text:{folder}/*.txt"
    if kind == "parquet":
        pq.write_table(pa.table({"article": texts}), path, row_group_size=130)
    else:
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", newline="") as file:
            if kind == "csv":
                rows = csv.writer(file)
                rows.writerows([["article"], *([text] for text in texts)])
            else:
                file.writelines(json.dumps({"article": text}) + "\n" for text in texts)
    return f"{kind}:{path}"


SCHEMES = "jsonl:a.gz jsonl:a csv:a.gz csv:a parquet:a text:a.txt sample:400"


@pytest.mark.parametrize("scheme", SCHEMES.split())
@pytest.mark.parametrize("task_bytes", [1 << 30, 100_000])
def test_every_reader_is_halfway_after_half_of_them(tmp_path, scheme, task_bytes):
    is_made = scheme.startswith("sample")
    corpus = scheme if is_made else write_corpus(tmp_path, scheme)
    options = CorpusOptions(corpus=corpus, task_bytes=task_bytes)
    tasks = list_tasks(options)
    size = sum(task.size_bytes for task in tasks)
    before = 0
    bytes_read = []
    for task in tasks:
        reader = read_task(task, options)
        bytes_read += [before + reader.position.share * task.size_bytes for _ in reader]
        assert 0.9 < reader.position.share <= 1
        before += task.size_bytes
    assert len(bytes_read) == DOCUMENTS
    for quarter in (1, 2, 3):
        fraction = bytes_read[DOCUMENTS * quarter // 4] / size
        assert fraction == pytest.approx(quarter / 4, abs=0.05)
    steps = [after - before for before, after in itertools.pairwise(bytes_read)]
    assert min(steps) >= 0 and max(steps) < 0.04 * size


def test_a_gzip_file_that_hides_its_length_moves_to_the_end(tmp_path):
    # The trailer counts only the last of its members, so its last task is the longest.
    path = tmp_path / "a.jsonl.gz"
    noise = random.Random(5)
    text = b"Rain fell on Monday. " * 17
    line = b'{"article": "%s%x"}\n'
    lines = [line % (text, noise.getrandbits(32)) for _ in range(20_000)]
    first, second = gzip.compress(b"".join(lines)), gzip.compress(lines[0])
    path.write_bytes(first + second)
    options = CorpusOptions(corpus=f"jsonl:{path}", task_bytes=500)
    *_, last = list_tasks(options)
    assert last.number >= 1
    reader = read_task(last, options)
    shares = [reader.position.share for _ in reader]
    assert len(shares) > 15_000 and 0.95 < shares[-1] <= 1
    middle = len(first) / 2 / len(first + second)
    assert shares[len(shares) // 2] == pytest.approx(middle, abs=0.05)
