"""Property test of whole runs of `precis summarize`: whatever a corpus holds, every
record is accounted for, once, and the result is the same however it is made.
"""

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.incremental_runs import CountedRuns, without_run
from support.random_corpora import MARKER, ROW, SCHEMES, corpora, write_corpus
from support.run_invariants import check_run, outcomes, read_rows

from precis.model.errors import DataError, UsageError
from precis.pipelines.summarize.summarize import summarize

_COMMON = settings(
    **{"derandomize": True, "deadline": None, "print_blob": True},
    **{"phases": [Phase.generate], "suppress_health_check": list(HealthCheck)},
)


@st.composite
def flag_sets(draw: st.DrawFn) -> dict[str, Any]:
    """Flags of a run without a network, but for the corpus and the output."""
    methods = ("frequency,lead", "lead", "textrank", "luhn,sumbasic", "oracle", "lsa")
    flags = {
        "task_bytes": draw(st.sampled_from((1 << 20, 100, 700))),
        "deduplicate": draw(st.booleans()),
        "min_source_words": draw(st.sampled_from((0, 5, 40))),
        "window_documents": draw(st.sampled_from((512, 1, 3))),
        "extractive": draw(st.sampled_from(methods)),
        "split": draw(st.sampled_from(("", "", "test", "train"))),
    }
    return {**flags, "max_failed_share": 1.0, "max_empty_share": 1.0}


def _check(draft: Any, flags: dict[str, Any], folder: Path) -> None:
    uses_splits = draft.scheme != "text"
    corpus, records = write_corpus(draft, folder / "corpus", uses_splits=uses_splits)
    flags = {**flags, "corpus": corpus}
    if uses_splits:
        flags["split_field"] = "part"
    split, deduplicates = flags["split"], flags["deduplicate"]
    expected = outcomes(records, split)
    first = folder / "first"
    if len(records) == len(expected["other_split"]):
        with pytest.raises((UsageError, DataError), match="holds no document"):
            summarize(output=first, **flags)
        return
    manifest = summarize(output=first, **flags)
    check_run(first, records, split=split, deduplicates=deduplicates)
    rows = read_rows(first, records)
    times = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    assert summarize(output=first, **flags) == manifest
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == times
    again = folder / "again"
    with pytest.MonkeyPatch.context() as patch:
        computed = CountedRuns(patch)
        summarize(output=again, reuse=first, **{**flags, "task_bytes": 300})
    check_run(again, records, split=split, deduplicates=True)
    if deduplicates:
        assert without_run(read_rows(again, records)) == without_run(rows)
    # Of the texts of a content, which differ in white space, one at least is reused.
    texts: dict[tuple[str, str], set[str]] = {}
    texts_again: dict[tuple[str, str], set[str]] = {}
    for row, record in zip(rows, expected[ROW], strict=True):
        reference = (record.highlights or "") if "oracle" in flags["extractive"] else ""
        content = row["content_sha256"], reference
        texts.setdefault(content, set()).add(record.article)
        again_of_content = texts_again.setdefault(content, set())
        if record.place in computed.places:
            again_of_content.add(record.article)
    assert all(texts_again[content] < texts[content] for content in texts)


def _check_in_new_folder(draft: Any, flags: dict[str, Any]) -> None:
    said = io.StringIO()
    out, err = contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)
    with tempfile.TemporaryDirectory() as folder, out, err:
        _check(draft, flags, Path(folder).resolve())
    assert MARKER not in said.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.usefixtures("one_time")
def test_every_record_of_a_random_corpus_is_accounted_for(scheme):
    @settings(_COMMON, max_examples=20)
    @given(corpora(scheme), flag_sets())
    def check(draft, flags):
        _check_in_new_folder(draft, flags)

    check()
