"""The built-in corpus: reproducible, without repeats, and not too easy.

The first sentences of its articles are no good summaries.
"""

import hashlib
import re
import statistics

import pytest
from rouge_score import rouge_scorer

from precis.model.errors import UsageError
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample import generator, source

# sha256 over ids, articles and highlights of documents 0 to 999, which have every
# sentence of stories.json. Changes with VERSION only.
GOLDEN_SHA256 = "adc84ce195f5677a52959ba48ef4a8b1a1ccdf6fe4284a2583aa0e9cc5f9c7fa"
NAME_PARTS = {
    word
    for name in ("first_name", "last_name", "town")
    for word in generator.stories()["names"][name]
}
WRITTEN = len(generator.hand_written())


def read_all(spec: str, *, split: str = "", task_documents: int = 1000) -> list:
    options = CorpusOptions(corpus=f"sample:{spec}", task_bytes=task_documents << 14)
    tasks = source.list_tasks(spec, options)
    records = [record for task in tasks for record in source.read(task, options)]
    documents = [record.content for record in records]
    return [document for document in documents if split in ("", document.split)]


def numbers(text: str) -> set[str]:
    return {match.rstrip(".,") for match in re.findall(r"\$?\d[\w.,-]*", text)}


def copied_words(highlights: str) -> set[str]:
    """The names in the highlights.

    A name is a word that is capitalised within a sentence, or the first word of a
    sentence if the lists of names have it.
    """
    words = set()
    for line in highlights.split("\n"):
        for position, word in enumerate(re.findall(r"[^\W\d_]+", line)):
            if word in NAME_PARTS or (position > 0 and word[0].isupper()):
                words.add(word)
    return words


def test_documents_are_the_golden_ones():
    digest = hashlib.sha256()
    for index in range(1000):
        document = generator.document(index)
        for text in (document.document_id, document.article, document.highlights):
            digest.update(f"{text}\n".encode())
    assert digest.hexdigest() == GOLDEN_SHA256


def test_task_boundaries_change_nothing():
    small = read_all("100", task_documents=7)
    large = read_all("100", task_documents=1000)
    assert [document.document_id for document in large] == [
        f"sample-{index:06d}" for index in range(100)
    ]
    assert small == large
    options = CorpusOptions(corpus="sample:100", task_bytes=7 << 14)
    tasks = source.list_tasks("100", options)
    assert [(task.number, task.start, task.stop) for task in tasks[-2:]] == [
        (13, 91, 98),
        (14, 98, 100),
    ]


def test_splits_are_disjoint_complete_and_independent_of_the_size():
    whole = {document.document_id for document in read_all("1500")}
    parts = {
        split: {document.document_id for document in read_all("1500", split=split)}
        for split in ("train", "validation", "test")
    }
    assert sum(len(part) for part in parts.values()) == len(whole)
    assert set().union(*parts.values()) == whole
    assert 0.88 < len(parts["train"]) / 1500 < 0.92
    assert 0.035 < len(parts["validation"]) / 1500 < 0.065
    assert {document.document_id for document in read_all("500", split="test")} < parts[
        "test"
    ]


def test_the_split_is_the_hash_of_the_id():
    expected = int(hashlib.sha256(b"sample-000123").hexdigest()[:16], 16) % 100
    assert generator.document(123).split == (
        "train" if expected < 90 else "validation" if expected < 95 else "test"
    )


def test_the_default_has_6000_documents_and_no_files():
    tasks = source.list_tasks("", CorpusOptions(corpus="sample:"))
    assert (tasks[0].start, tasks[-1].stop, len(tasks)) == (0, 6000, 6)
    assert all(
        task.paths == () and task.split == "" and task.version == generator.VERSION
        for task in tasks
    )


@pytest.mark.parametrize("spec", ["0", "-5", "1.5", "many", "20000:test", "٣"])
def test_a_bad_size_is_refused(spec):
    with pytest.raises(
        UsageError, match=f"sample:{re.escape(spec)}: .* is not a positive whole number"
    ):
        source.list_tasks(spec, CorpusOptions(corpus="sample:"))


def test_no_article_and_no_id_comes_twice():
    documents = read_all("2000")
    assert len({document.document_id for document in documents}) == 2000
    assert len({document.article for document in documents}) == 2000


def test_every_name_and_number_of_the_highlights_stands_in_the_article():
    for index in range(WRITTEN, WRITTEN + 2000):
        document = generator.document(index)
        assert numbers(document.highlights) <= numbers(document.article), document
        assert copied_words(document.highlights) <= set(
            re.findall(r"[^\W\d_]+", document.article)
        ), document


def test_the_wording_of_the_highlights_follows_from_the_article():
    signs = {
        "fire": (r"Nobody was hurt", r"nobody was hurt|unhurt|No injuries"),
        "court": (r"has cleared", r"[Nn]ot guilty"),
        "match": (r"shared the points", r" drew |between .* and "),
        "storm": (r"Flooding", r"river broke|Rescue boats|Cellars"),
    }
    counts = {(kind, is_positive): 0 for kind in signs for is_positive in (True, False)}
    for index in range(WRITTEN, WRITTEN + 1000):
        document = generator.document(index)
        kind = document.metadata["kind"]
        if kind in signs:
            in_highlights, in_article = (
                bool(re.search(sign, text))
                for sign, text in zip(signs[kind], document[3:1:-1], strict=True)
            )
            assert in_highlights == in_article, document
            counts[kind, in_highlights] += 1
    assert min(counts.values()) > 5


def test_the_first_three_sentences_are_a_mediocre_summary():
    scorer = rouge_scorer.RougeScorer(["rouge2"], use_stemmer=True)
    scores = []
    lengths = []
    kinds = set()
    for index in range(WRITTEN, WRITTEN + 200):
        document = generator.document(index)
        first = re.split(r"(?<=[.?])\s+(?=[A-Z\"])", document.article)[:3]
        scores.append(
            scorer.score(document.highlights, " ".join(first))["rouge2"].fmeasure
        )
        lengths.append(len(document.article.split()))
        kinds.add(document.metadata["kind"])
    assert 0.05 < statistics.mean(scores) < 0.25
    assert 100 < statistics.mean(lengths) < 140
    assert len(kinds) == len(generator.stories()["kinds"]) == 16


def test_the_hand_written_articles_come_first_and_are_awkward():
    written = generator.hand_written()
    assert len(written) == 36
    assert [generator.document(index) for index in range(len(written))] == written
    assert generator.document(len(written)).metadata["kind"] != "hand-written"
    articles = [document.article for document in written]
    assert sum(len(article.split()) > 1500 for article in articles) == 1
    assert sum(article.isupper() for article in articles) == 1
    for awkward in (
        "\u00a0",
        "e\u0301",
        "🎉",
        "https://",
        "\n- ",
        "(CNN) --",
        "PUBLISHED:",
        "i.e.",
        "€1,250",
        "...",
        "&amp;",
    ):
        assert any(awkward in article for article in articles), awkward
    assert all(
        document.highlights and len(document.highlights.split("\n")) in (1, 2)
        for document in written
    )
