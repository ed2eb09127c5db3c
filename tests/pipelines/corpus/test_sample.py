"""The built-in corpus: reproducible, without repeats, and not too easy.

The first sentences of its articles are no good summaries.
"""

import hashlib
import re

import pytest
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample import generator

# sha256 over ids, articles and highlights of documents 0 to 999, which have every
# sentence of stories.json. Changes with VERSION only.
GOLDEN_SHA256 = "adc84ce195f5677a52959ba48ef4a8b1a1ccdf6fe4284a2583aa0e9cc5f9c7fa"


def test_documents_are_the_golden_ones():
    digest = hashlib.sha256()
    for index in range(1000):
        document = generator.document(index)
        for text in (document.document_id, document.article, document.highlights):
            digest.update(f"{text}\n".encode())
    assert digest.hexdigest() == GOLDEN_SHA256


def test_task_boundaries_change_nothing():
    tasks, documents = read_corpus("sample:100", task_bytes=7 << 14)
    assert [(task.start, task.stop) for task in tasks[-2:]] == [(91, 98), (98, 100)]
    assert documents == read_corpus("sample:100")[1]
    assert [d.document_id for d in documents] == [f"sample-{n:06d}" for n in range(100)]


@pytest.mark.parametrize("spec", ["0", "-5", "1.5", "many", "20000:test", "٣"])
def test_a_bad_size_is_refused(spec):
    message = f"sample:{re.escape(spec)}: .* is not a positive whole number"
    with pytest.raises(UsageError, match=message):
        generator.list_tasks(spec, CorpusOptions(corpus="sample:"))
