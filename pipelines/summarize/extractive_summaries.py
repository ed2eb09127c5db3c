"""The sentences that every extractive method chooses in a document."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.bundle.manifest import EXTRACTIVE, open_bundle_config
from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.extractive.config import BASELINES, SelectionConfig
from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.methods import METHODS, TERM_METHODS, score_sentences
from precis.model.extractive.oracle import oracle_sentences
from precis.model.extractive.selection import Extract, extract
from precis.model.extractive.terms import TermCache, Terms, find_terms
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.words import join_words, split_chunks
from precis.pipelines.summarize.options import WRITE_SENTENCES, SummarizeOptions
from precis.pipelines.tables.columns import round_score

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
    is_unused = NEURAL not in options.methods and options.write != WRITE_SENTENCES
    if options.extractive_bundle and is_unused:
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


def check_writing(options: SummarizeOptions, decoding: SearchConfig) -> None:
    """Refuses to write sentences without what chooses them.

    Raises:
      UsageError: a bundle is missing, the extractor does not know the importance of
        words, or several summaries of a document are asked for.
    """
    if options.write != WRITE_SENTENCES:
        return
    if decoding.n_best > 1:
        raise UsageError(
            f"--n_best {decoding.n_best}: write=sentences puts one summary together "
            "from all lines of the beam; leave it at 1"
        )
    for name, command in (
        ("bundle", "`precis train` on records of `--target sentences`"),
        ("extractive_bundle", "`precis train-extractor`"),
    ):
        if not getattr(options, name):
            raise UsageError(
                f"write=sentences needs --{name}, the --output of {command}; name "
                "it too"
            )
    contents = open_bundle_config(options.extractive_bundle, EXTRACTIVE)
    if "importance" not in contents.config:
        raise UsageError(
            f"{options.extractive_bundle}: does not know the importance of words, by "
            "which write=sentences puts a summary together; train it again"
        )


def neural_scores(
    articles: Sequence[Article], scorer: "SentenceScorer"
) -> list[np.ndarray]:
    """The scores of the method `neural` for the sentences of documents, float64 [N]
    each.
    """
    sentences = [[each.text for each in article.sentences] for article in articles]
    return [
        np.array([round_score(score) for score in scores.tolist()])
        for scores in scorer.score(sentences)
    ]


def read_words(
    articles: Sequence[Article], methods: Sequence[str], cache: TermCache
) -> Sequence[Terms | None]:
    """Reads what the methods and the measures need of the words of articles.

    Together this takes a third of the time that it takes for each alone.

    Args:
      articles: at most READ_TOGETHER documents.
      methods: names of the methods.
      cache: of the terms of their words.

    Returns:
      The terms of each; None where no method reads terms.
    """
    pieces = [article.pieces for article in articles]
    sentences = [text for of_article in pieces for text in of_article[:-1]]
    heads = [of_article[-1] for of_article in pieces]
    chunks = split_chunks(sentences + heads)
    terms: Sequence[Terms | None] = [None] * len(articles)
    if not TERM_METHODS.keys().isdisjoint(methods):
        texts = [[each.text for each in article.sentences] for article in articles]
        terms = find_terms(texts, cache, chunks)
    words = join_words(chunks)
    sentence_words = iter(words)
    for article, head in zip(articles, words[len(sentences) :], strict=True):
        body = itertools.islice(sentence_words, len(article.sentences))
        article.keep_words([*body, head])
    return terms


def choose_sentences(
    article: Article,
    neural: np.ndarray | None,
    terms: Terms | None,
    *,
    methods: Sequence[str],
    selection: SelectionConfig,
    expected: ExpectedReference | None = None,
) -> dict[str, list[Extract]]:
    """The sentences of a document that each method chooses, in document order.

    The oracle chooses nothing where the document has no reference.

    Args:
      article: the document.
      neural: the scores of the method `neural`.
      terms: of the article; None where no method reads terms.
      methods: names of the methods.
      selection: how sentences are chosen by their scores.
      expected: of the reference, by the network of `neural`, where it has learned
          that.
    """
    texts = [sentence.text for sentence in article.sentences]
    extracts = {}
    for method in methods:
        if method == ORACLE:
            extracts[method] = _oracle_extracts(article, texts, selection.count)
            continue
        scores = neural if method == NEURAL else score_sentences(method, texts, terms)
        assert scores is not None
        extracts[method] = extract(
            article.sentences,
            scores,
            selection=selection,
            is_baseline=method in BASELINES,
            expected=expected if method == NEURAL else None,
        )
    return extracts


def _oracle_extracts(
    article: Article, texts: Sequence[str], count: int
) -> list[Extract]:
    reference = article.document.highlights
    picks = oracle_sentences(texts, reference, count) if reference else ()
    extracts = [
        Extract(rank, pick.gain, article.sentences[pick.place])
        for rank, pick in enumerate(picks, start=1)
    ]
    return sorted(extracts, key=lambda extract: extract.sentence.start)
