"""`precis.summarize_text`: the summaries of one document, without a corpus or Beam's
runner.
"""

import functools
from collections.abc import Mapping
from typing import Any

from precis.model.errors import JobError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.clean import check_cleaning
from precis.pipelines.options.summarize import NOT_FOR_A_TEXT
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.summarize.document_windows import read_windows
from precis.pipelines.summarize.extractive_summaries import ORACLE
from precis.pipelines.summarize.summary_rows import UNLINKED, run_columns
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer

# Two sets of settings, such as two networks to compare, stay loaded.
_MOST_LOADED = 2


def summarize_text(
    text: str,
    *,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    **flags: Any,
) -> dict[str, Any]:
    """Summarizes one document.

        row = precis.summarize_text(article, bundle="bundle", beam_width=6)
        print(row["summary"], row["quality_flags"])

    A bundle is loaded at the first call and kept, so later calls take only the time of
    the search. For many documents `precis.summarize` is faster by far.

    Args:
      text: the document.
      clean: as `--clean` of `precis summarize`: standard or none.
      strip_boilerplate: leave out agency lines, as `precis summarize` does.
      **flags: the flags of `precis summarize` that concern summaries.

    Returns:
      The row that `precis summarize` would write, a value for each column of
      docs/SCHEMA.md.

    Raises:
      UsageError: an invalid flag or bundle, or a text without words.
      JobError: the summary cannot be made, as where memory runs out.
    """
    if not isinstance(text, str):
        raise UsageError(
            f"summarize_text takes one text, not {type(text).__name__}; "
            "precis.summarize takes a corpus"
        )
    for name in NOT_FOR_A_TEXT:
        if name in flags:
            raise UsageError(f"summarize_text takes no {name}; precis.summarize does")
    check_cleaning(clean)
    article = Article.from_text(text, clean=clean, strip_boilerplate=strip_boilerplate)
    article = article.with_id_and_split(article.content_sha256, "")
    if not article.body:
        raise UsageError("the text cannot be summarized: the article has no text")
    cleaning = {"clean": clean, "strip_boilerplate": strip_boilerplate}
    return summarize_article(article, flags, cleaning=cleaning)


def summarize_article(
    article: Article, flags: Mapping[str, Any], *, cleaning: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of an article with a text.

    Args:
      article: with its id and its split.
      flags: as those of `summarize_text`.
      cleaning: as in `SummarySettings`.

    Raises:
      UsageError: an invalid flag or bundle, or a method that needs a reference.
      JobError: the summary cannot be made.
    """
    # A search process would take longer to start than one document to search.
    settings = read_settings({"search_processes": 1, **flags}, cleaning=cleaning)
    if ORACLE in settings.options.methods:
        raise UsageError(
            "--extractive oracle chooses sentences by a reference summary, and one "
            "document has none; name other methods, as in --extractive lexrank,lead"
        )
    if settings.options.bundle or settings.options.extractive_bundle:
        load_tensorflow()
    (window,) = read_windows([article], settings)
    summarizer = _load(_HashableSettings(settings))
    (summarized,) = summarizer.summarize([window])
    for letter in summarized.letters:
        raise JobError(f"the text cannot be summarized: {letter.detail}")
    (row,) = summarized.rows
    return {**row.columns, **UNLINKED, **run_columns(settings, run_id="")}


class _HashableSettings:
    """Settings as the key of a cache: equal flags and models are equal settings."""

    def __init__(self, settings: SummarySettings) -> None:
        self.settings = settings
        self._key = (
            settings[:5],
            tuple(settings.model_ids.items()),
            tuple(settings.cleaning.items()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HashableSettings) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@functools.lru_cache(maxsize=_MOST_LOADED)
def _load(key: _HashableSettings) -> WindowSummarizer:
    """A summarizer with its models in memory."""
    summarizer = WindowSummarizer(key.settings)
    summarizer.load()
    return summarizer
