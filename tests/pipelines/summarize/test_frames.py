"""`precis.summarize_frame`, with frames of each library."""

import pyarrow as pa
import pytest
from support import read_table
from support.command_line import write_jsonl
from support.summarize_runs import rows_of, story

import precis
from precis.model.errors import UsageError

STORIES = [story(number) for number in range(3)]
# Rows with a story; the others have no summary.
ARTICLES = [each["article"] for each in STORIES]
TEXTS = [ARTICLES[0], None, " \n", *ARTICLES[1:]]
FRAME = {"key": [7, 8, 9, 10, 11], "body": TEXTS}
LIBRARIES = [
    "pyarrow",
    pytest.param("pandas", marks=pytest.mark.slow),
    pytest.param("polars", marks=pytest.mark.slow),
]


def make_frame(library, values):
    if library == "pyarrow":
        return pa.table(values)
    return pytest.importorskip(library).DataFrame(values)


def lists_of(library, frame):
    """The values of a frame by column, its missing ones as None."""
    if library == "pandas":
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    return (frame.to_arrow() if library == "polars" else frame).to_pydict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_the_rows_of_a_run_beside_its_own(library, tmp_path):
    flags = {"extractive": "random,lead", "min_source_words": 0, "language": "cy"}
    lines = [{"article": text} for text in ARTICLES]
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    precis.summarize(corpus=corpus, output=tmp_path / "run", **flags)
    written = rows_of(tmp_path / "run")

    frame = make_frame(library, FRAME)
    if library == "pandas":
        frame.index = list("edcba")
    made = precis.summarize_frame(frame, "body", **flags)
    assert type(made) is type(frame)
    if library == "pandas":
        assert list(made.index) == list("edcba")
    columns = lists_of(library, made)
    assert list(columns)[:2] == list(FRAME)
    assert {name: columns[name] for name in FRAME} == FRAME
    reason = "empty_article: the article has no text"
    assert columns["summary_failure"] == [None, reason, reason, None, None]
    assert set(columns["language"]) == {"cy", None}
    for name in ("summary", "content_sha256", "article_words", "settings_id"):
        expected = iter([row[name] for row in written])
        failed = columns["summary_failure"]
        assert columns[name] == [None if each else next(expected) for each in failed]
    sentences = [row["text"] for row in written[1]["extractive"]]
    assert [row["text"] for row in columns["extractive"][3]] == sentences
    assert not {"split", "source_file", "run_id"} & {*columns}


@pytest.mark.slow
def test_what_is_no_text_costs_its_row():
    pandas = pytest.importorskip("pandas")
    texts = [TEXTS[0], 5, float("nan"), "\ud800 of a pair"]
    made = precis.summarize_frame(pandas.DataFrame({"body": texts}), text="body")
    assert made["summary_failure"].tolist() == [
        None,
        "wrong_type: 'article' holds a value of type int",
        "empty_article: the article has no text",
        "invalid_text: 'article' holds half of a surrogate pair, not a character",
    ]
    assert made["summary"].notna().tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    "columns",
    [["summary", "article_words", "summary_failure"], "summary, article_words"],
)
def test_some_columns_are_added(columns):
    # A column of the frame may have a name that is not added.
    frame = pa.table({"body": ARTICLES[:1], "language": ["of the frame"]})
    made = precis.summarize_frame(frame, "body", columns=columns)
    added = ["summary", "article_words", "summary_failure"]
    assert made.column_names == ["body", "language", *added]


def test_a_frame_without_rows():
    empty = precis.summarize_frame(pa.table({"body": pa.array([], "string")}), "body")
    assert empty.num_rows == 0 and empty["summary"].type == "string"


REFUSED = read_table("refusals")["frames"]


@pytest.mark.parametrize(("columns", "flags", "message"), REFUSED)
def test_what_cannot_be_summarized_is_refused(columns, flags, message):
    with pytest.raises(UsageError, match=message):
        precis.summarize_frame(pa.table(columns), "body", **flags)
    with pytest.raises(TypeError, match=r"Unsupported dataframe type.*<class 'dict'>"):
        precis.summarize_frame({"body": ["a"]}, "body")
