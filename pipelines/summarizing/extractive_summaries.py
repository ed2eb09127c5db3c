"""The sentences that every extractive method chooses in a document."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.extractive.config import BASELINES, SelectionConfig
from precis.model.extractive.methods import METHODS
from precis.model.extractive.oracle import oracle_sentences
from precis.model.extractive.selection import Extract, extract, select
from precis.model.isolation import Failure, isolate
from precis.model.text.article import Article
from precis.model.text.sentences import Sentence
from precis.pipelines.options.summarize import EXTRACT_THEN_WRITE, SummarizeOptions
from precis.pipelines.tables.score_rounding import round_score

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.sentence_scorer import SentenceScorer

# The stage of a failure to choose sentences.
EXTRACT = "extract"
# Two methods beside METHODS: neural needs a bundle, oracle needs the reference.
NEURAL = "neural"
ORACLE = "oracle"


def check_methods(options: SummarizeOptions) -> None:
    """Checks the names of the extractive methods.

    Raises:
      UsageError: no method is named; a method is unknown or named twice; `neural` is
          named without its bundle, or the bundle without `neural`; `oracle` is named
          first of several.
    """
    names = sorted([*METHODS, NEURAL, ORACLE])
    known = ", ".join(names)
    if not options.methods:
        raise UsageError(f"--extractive names no method; known are {known}")
    for name in options.methods:
        if name not in (*METHODS, NEURAL, ORACLE):
            way_out = suggestion(name, names) or f"known are {known}"
            raise UsageError(f"--extractive: there is no method {name!r}; {way_out}")
    if len(set(options.methods)) < len(options.methods):
        raise UsageError(
            f"--extractive names a method twice: {options.extractive}; name each once"
        )
    if NEURAL in options.methods and not options.extractive_bundle:
        raise UsageError(
            "--extractive neural needs --extractive_bundle, the --output of "
            "`precis train-extractor`; name it too"
        )
    if options.extractive_bundle and NEURAL not in options.methods:
        raise UsageError(
            "--extractive_bundle is for the method neural, and --extractive is "
            f"{options.extractive}; name neural there too"
        )
    if options.methods[0] == ORACLE and len(options.methods) > 1:
        raise UsageError(
            "--extractive names oracle first, whose sentences would be the summary to "
            "show though the reference chose them; name another method first, or "
            "oracle alone"
        )
    if options.long_documents == EXTRACT_THEN_WRITE and options.methods[0] == ORACLE:
        raise UsageError(
            "--long_documents extract_then_write reads the sentences of the first of "
            "--extractive, and oracle would choose them by the reference; name another "
            "method"
        )


def neural_scores(
    articles: Sequence[Article], scorer: "SentenceScorer | None"
) -> "Sequence[np.ndarray | Failure | None]":
    """The scores of the method `neural`, for all documents at once.

    Args:
      articles: the documents.
      scorer: the network; None where the method is not used.

    Returns:
      float64 [N] for each document, its failure, or None without a network.
    """
    if scorer is None:
        return [None] * len(articles)
    return isolate(
        articles,
        lambda group: [
            np.array([round_score(score) for score in scores.tolist()])
            for scores in scorer.score(
                [[sentence.text for sentence in article.sentences] for article in group]
            )
        ],
        stage=EXTRACT,
    )


def choose_sentences(
    sentences: Sequence[Sentence],
    reference: str | None,
    neural: np.ndarray | None,
    *,
    methods: Sequence[str],
    selection: SelectionConfig,
) -> dict[str, list[Extract]]:
    """The sentences of a document that each method chooses, in document order.

    Args:
      sentences: of the document.
      reference: its highlights, for `oracle`, which chooses nothing where there are
          none.
      neural: the scores of the method `neural`.
      methods: names of the methods.
      selection: how sentences are chosen by their scores.
    """
    texts = [sentence.text for sentence in sentences]
    return {
        method: _choose(
            method, sentences, texts, reference, neural, selection=selection
        )
        for method in methods
    }


def rank_sentences(
    sentences: Sequence[str],
    *,
    method: str,
    scorer: "SentenceScorer | None",
) -> list[int]:
    """The places of sentences by the scores of a method, the best first.

    Sentences about the web page are left out where `choose_sentences` does so.
    """
    if method == NEURAL:
        assert scorer is not None
        (scores,) = scorer.score([sentences])
    else:
        scores = METHODS[method](sentences)
    everything = SelectionConfig(sentences=max(1, len(sentences)), redundancy="none")
    return select(
        sentences,
        scores,
        selection=everything,
        skip_boilerplate=method not in BASELINES,
    )


def _choose(
    method: str,
    sentences: Sequence[Sentence],
    texts: Sequence[str],
    reference: str | None,
    neural: np.ndarray | None,
    *,
    selection: SelectionConfig,
) -> list[Extract]:
    if method == ORACLE:
        if not reference:
            return []
        picks = oracle_sentences(texts, reference, selection.sentences)
        extracts = [
            Extract(rank, pick.gain, sentences[pick.place])
            for rank, pick in enumerate(picks, start=1)
        ]
        return sorted(extracts, key=lambda extract: extract.sentence.start)
    scores = METHODS[method](texts) if neural is None or method != NEURAL else neural
    return extract(
        sentences,
        scores,
        selection=selection.for_method(method),
        skip_boilerplate=method not in BASELINES,
    )
