"""The sentences that every extractive method chooses in a window of documents."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.extractive.config import BASELINES, SelectionConfig
from precis.model.extractive.methods import METHODS
from precis.model.extractive.oracle import oracle_sentences
from precis.model.extractive.selection import Extract, extract
from precis.model.text.sentences import Sentence
from precis.pipelines.options.summarize import SummarizeOptions

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.sentence_scorer import SentenceScorer

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


def choose_sentences(
    documents: Sequence[Sequence[Sentence]],
    references: Sequence[str | None],
    *,
    methods: Sequence[str],
    selection: SelectionConfig,
    scorer: "SentenceScorer | None",
) -> list[dict[str, list[Extract]]]:
    """For each document the sentences that each method chooses, in document order.

    Args:
      documents: the sentences of each document.
      references: the highlights of each document, for `oracle`, which chooses nothing
          where there are none.
      methods: names of the methods.
      selection: how sentences are chosen by their scores.
      scorer: gives the scores of `neural`, for all documents at once.
    """
    texts = [[sentence.text for sentence in sentences] for sentences in documents]
    neural = scorer.score(texts) if scorer is not None else [None] * len(texts)
    return [
        {method: _choose(method, *document, selection=selection) for method in methods}
        for document in zip(documents, texts, references, neural, strict=True)
    ]


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
