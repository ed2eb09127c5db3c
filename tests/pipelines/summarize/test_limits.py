"""No summary is longer than --max_words and --max_chars, whoever writes it, and none is
cut within a sentence.
"""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.damaged_results import edit_description, findings
from support.summarize_runs import rows_of, settings_of, summarized

from precis.model.bundle.network_bundle import save_bundle
from precis.model.text.sentences import split_sentences
from precis.model.text.words import words
from precis.pipelines.evaluate.scoring import extractive_summaries
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.summarize.summarize import summarize

WORDS = (
    *("rain", "fell", "U.S.", "well-known", "Zoë\u00a0B.", "4,500", "«", "and/or"),
    *("don't", "I\u0307", "\U0001f327", "coast", "–", "&", "$"),
)
LIMITS = (
    {"max_words": 6},
    {"max_chars": 40},
    {"form": "headline"},
    {"form": "key_points", "max_words": 20, "max_chars": 99},
)


def document(number):
    """Sentences of 1 to 20 words between many kinds of white space."""
    draw = random.Random(number)
    sentences = [
        " ".join(draw.choices(WORDS, k=draw.choice((1, 2, 4, 7, 20))))
        + draw.choice(".?!")
        for _ in range(draw.randint(1, 6))
    ]
    text = draw.choice((" ", "  ", "\n", "\u2028")).join(sentences)
    line = {"id": f"d{number}", "article": text, "n": number % 40}
    return {**line, "highlights": sentences[0]}


def texts_of(row):
    """All summaries of a row."""
    chosen = {}
    for item in row["extractive"]:
        line = item["line"] or " ".join(item["text"].split())
        chosen.setdefault(item["method"], []).append(line)
    shown = chosen.get(row["extractive_method"], [])
    assert row["extractive_summary"] == "\n".join(shown)
    written = [each["text"] for each in row["abstractive"] or ()]
    return [row["summary"], *map("\n".join, chosen.values()), *written]


def check(texts, settings):
    most_words, most_chars, most_lines = settings.selection.limit
    for text in texts:
        for count in (len(words(text)), len(text.split())):
            assert not most_words or count <= most_words
        assert not most_chars or len(text) <= most_chars
        assert not most_lines or text.count("\n") < most_lines


@pytest.mark.parametrize(
    ("limit", "rows"),
    [
        (LIMITS[0], 300),
        *(pytest.param(each, 2_500, marks=pytest.mark.slow) for each in LIMITS),
    ],
)
def test_no_summary_of_ten_thousand_rows_is_longer(limit, rows):
    """In the slow tests 2,500 rows for each of four limits."""
    lines = [document(number) for number in range(rows)]
    flags = {"extractive": "frequency,random,oracle", "window_documents": 9_999}
    flags |= {"min_source_words": 12, **limit}
    methods = set()
    for line, row in zip(lines, summarized(lines, **flags).rows, strict=True):
        check(texts_of(row), settings_of(**flags))
        methods.add(row["summary_method"])
        is_flagged = "over_limit" in row["quality_flags"]
        is_too_long = bool(split_sentences(line["article"])) and not row["summary"]
        assert is_flagged == is_too_long
        for item in row["extractive"]:
            assert line["article"][item["start"] : item["end"]] == item["text"]
    assert methods == {"source", "frequency"}


@pytest.mark.parametrize(
    ("most", "summary"), [(8, "It fell on Monday."), (4, "It fell on Monday."), (3, "")]
)
def test_an_oracle_keeps_the_limit(most, summary):
    reference = "It fell on Monday."
    line = {"article": f"Nobody came to town. {reference}", "highlights": reference}
    flags = {"extractive": "oracle", "min_source_words": 0, "max_words": most}
    (row,) = summarized([line], **flags).rows
    assert row["summary"] == summary
    assert ("over_limit" in row["quality_flags"]) == (not summary)
    line["highlights"] = "... 👍"  # which ROUGE does not read
    assert summarized([line], **flags).rows[0]["quality_flags"] == ["empty"]


def test_where_only_a_caption_fits_the_empty_summary_says_why():
    fits = "Scroll down for video."
    line = {"article": f"Nobody came to town on the day of the market. {fits}"}
    (row,) = summarized([line], extractive="lexrank", form="headline", max_words=5).rows
    assert (row["summary"], row["quality_flags"]) == ("", ["empty", "over_limit"])


def test_a_row_has_the_headline_and_the_sentence_that_was_shortened():
    news = "On Monday, the mayor of Oslo sold  the old mill to brewers from Bergen."
    others = "It was cold in town. Was it?  He left.\n\n"
    flags = {"extractive": "lead", "form": "headline", "min_source_words": 0}
    lines = [{"article": news + " " + others}, {"article": others + news}]
    lines.append({"article": others, "highlights": "Rain fell."})
    first, last, none = summarized(lines, **flags).rows
    for line, row in zip(lines, (first, last), strict=False):
        (item,) = row["extractive"]
        assert line["article"][item["start"] : item["end"]] == item["text"] == news
        assert row["summary"] == row["extractive_summary"] == item["line"]
        assert extractive_summaries([item]) == {"lead": row["summary"]}
    headline = "The mayor of Oslo sold the old mill to brewers from Bergen."
    assert row["summary"] == headline
    assert first["quality_flags"] == ["barely_shorter"]
    assert last["quality_flags"] == ["barely_shorter", "low_confidence"]
    assert (none["summary"], none["extractive"]) == ("", [])
    assert none["quality_flags"] == ["empty", "over_limit"]
    # A limit that a whole sentence is within, and two lines.
    (row,) = summarized(lines[:1], **flags, sentences=2, max_words=40).rows
    assert [item["line"] for item in row["extractive"]] == [None, None]


@pytest.mark.parametrize("words", [0, 30])
@pytest.mark.parametrize("text", ["雨が降った。寒かった。", "Rain fell.He left."])
def test_no_summary_is_longer_than_its_article(text, words):
    (row,) = summarized([{"article": text}], min_source_words=words).rows
    assert row["summary"] == text


def test_groups_are_within_the_limit(tmp_path):
    lines = list(map(document, range(400)))
    corpus = write_jsonl(tmp_path / "lines.jsonl", lines)
    flags = {"max_words": 12, "max_chars": 70, "extractive": "lead,frequency"}
    output = tmp_path / "run"
    summarize(corpus=corpus, output=output, group_by="n", workers=1, **flags)
    assert findings(output) == []
    rows = pq.read_table(output / "groups").to_pylist()
    texts = [row["summary"] for row in rows]
    assert len(texts) == 40 and all(texts)
    check([*texts, *(row["summary"] for row in rows_of(output))], settings_of(**flags))
    assert max(text.count("\n") for text in texts) == 2
    for row in rows:
        lines = [" ".join(each["text"].split()) for each in row["sentences"]]
        assert row["summary"] == "\n".join(lines)
    for folder in ("data", "groups"):
        (path,) = (output / folder).glob("*.parquet")
        table = pq.read_table(path)
        rows = table.to_pylist()
        rows[7]["summary"] += " or" * 12
        pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
        name = f"{folder}/{path.name}"
        entries = [describe_file(str(output), name, rows=len(rows))]

        def take(manifest, folder=folder, entries=entries):
            of_kind = manifest if folder == "data" else manifest["groups"]
            of_kind["files"] = entries

        edit_description(output / "manifest.json", take)
        problem = "a text is longer than the limit of the run"
        assert f"{name}, row 7: {problem}" in findings(output)


@pytest.fixture(scope="module")
def ending_bundle(tokenizer, tmp_path_factory):
    """A network of random weights that likes to end a summary, or a sentence."""
    from precis.model.network.build import build_network
    from precis.model.network.config import TransformerConfig

    shape = {"width": 16, "feed_forward": 16, "heads": 2, "pointer": False}
    shape |= {"encoder_layers": 1, "decoder_layers": 1, "logits_bias": True}
    limits = {"max_source_tokens": 32, "max_target_tokens": 16}
    size = {"vocabulary_size": tokenizer.vocabulary_size, "pad_id": tokenizer.pad_id}
    network = build_network(TransformerConfig(**size, **shape, **limits), seed=3)
    (bias,) = (each for each in network.variables if each.name == "logits_bias")
    values = bias.numpy()
    values[..., tokenizer.end_id] += 1.5
    values[..., tokenizer.vocabulary.index(".")] += 3.0
    bias.assign(values)
    folder = str(tmp_path_factory.mktemp("ending"))
    save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS[:3])
def test_what_a_network_writes_is_within_the_limit(ending_bundle, limit):
    lines = [document(number) for number in range(150)]
    flags = {"bundle": ending_bundle, "beam_width": 3, "n_best": 2, **limit}
    window = summarized(lines, **flags)
    methods = {}
    for row in window.rows:
        check(texts_of(row), settings_of(**flags))
        is_over = "over_limit" in row["abstractive_quality"]["flags"]
        assert is_over == (row["abstractive_summary"] == "")
        assert len(row["abstractive"]) <= 2
        methods[row["summary_method"]] = methods.get(row["summary_method"], 0) + 1
    assert min(methods["abstractive"], methods["frequency"]) > 5, methods
