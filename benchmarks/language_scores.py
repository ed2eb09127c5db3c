"""The scores of sentences, computed in a process of their own for `languages.py`.

    python benchmarks/language_scores.py {precis,sumy} METHODS < texts > scores

Both are lists in JSON: a text has `article` and `language`, for sumy also `sentences`;
its scores have `sentences` and `scores`, by method. What sumy lacks is left out: a
language without a stemmer, a method.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Sequence
from typing import Any

_SUMY = {
    "lexrank": "lex_rank.LexRankSummarizer",
    "textrank": "text_rank.TextRankSummarizer",
    "lsa": "lsa.LsaSummarizer",
    "luhn": "luhn.LuhnSummarizer",
    "sumbasic": "sum_basic.SumBasicSummarizer",
}


def score_by_precis(text: dict[str, Any], methods: Sequence[str]) -> dict[str, Any]:
    """The scores of the package that is imported, which may be of another checkout."""
    from precis.model.extractive.methods import score_sentences
    from precis.model.extractive.terms import find_terms
    from precis.model.text.article import Article

    language = text["language"]
    sentences = Article.from_text(text["article"]).sentence_texts
    options: dict[str, Any] = {"languages": [language]}
    if "languages" not in inspect.signature(find_terms).parameters:
        options = {"is_english": language == "en"}  # of a checkout without languages
    (terms,) = find_terms([sentences], **options)
    scores = {
        name: score_sentences(name, sentences, terms).tolist() for name in methods
    }
    return {"sentences": sentences, "scores": scores}


def score_by_sumy(text: dict[str, Any], methods: Sequence[str]) -> dict[str, Any]:
    """The scores of sumy with its words, stemmer and stop words."""
    import nltk
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.nlp.tokenizers import Tokenizer
    from sumy.utils import get_stop_words, normalize_language

    try:
        language = normalize_language(text["language"])
        stemmer = Stemmer(language)
    except LookupError:
        return {"sentences": text["sentences"], "scores": {}}
    try:
        stop_words = get_stop_words(language)
    except LookupError:
        stop_words = frozenset()
    special = Tokenizer.SPECIAL_WORD_TOKENIZERS.get(language)

    class Words:
        """sumy's words, without the data for sentences that it downloads."""

        def to_words(self, line: str) -> list[str]:
            if special is not None:
                return list(filter(Tokenizer._is_word, special.tokenize(line)))
            return list(
                filter(Tokenizer._is_word, nltk.word_tokenize(line, preserve_line=True))
            )

    sentences = [Sentence(sentence, Words()) for sentence in text["sentences"]]
    document = ObjectDocumentModel([Paragraph(sentences)])
    scores = {}
    for name in _SUMY.keys() & set(methods):
        module, _, kind = _SUMY[name].partition(".")
        summarizer = getattr(
            importlib.import_module(f"sumy.summarizers.{module}"), kind
        )

        class Rating(summarizer):
            @staticmethod
            def _get_best_sentences(sentences, count, rating, *args, **kwargs):
                rate = rating.__getitem__ if isinstance(rating, dict) else rating
                return [float(rate(each, *args, **kwargs)) for each in sentences]

        method = Rating(stemmer)
        method.stop_words = stop_words
        scores[name] = method(document, len(sentences)) if sentences else []
    return {"sentences": text["sentences"], "scores": scores}


if __name__ == "__main__":
    _, package, names = sys.argv
    score = score_by_sumy if package == "sumy" else score_by_precis
    answers = [score(text, names.split(",")) for text in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)
