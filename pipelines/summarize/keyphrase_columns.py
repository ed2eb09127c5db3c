"""The columns `keyphrases` and `reference_keyphrases`."""

from typing import TYPE_CHECKING, Any

from precis.model.text.article import Article
from precis.pipelines.tables.score_rounding import round_score

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.keyphrases.classifier import KeyphraseModel


def keyphrase_columns(
    article: Article, model: "KeyphraseModel | None", count: int
) -> dict[str, Any]:
    """The columns of the keyphrases of an article, at most `count` of each method.

    With a reference also those that it names, and those of the baseline, for `precis
    evaluate`.
    """
    if model is None:
        return {"keyphrases": None, "reference_keyphrases": None}
    from precis.model.keyphrases.ranking import frequent_keyphrases
    from precis.model.keyphrases.references import reference_keyphrases

    texts = [sentence.text for sentence in article.sentences]
    reference = article.document.highlights
    phrases = [
        {"method": "classifier", "phrase": phrase, "score": round_score(score)}
        for phrase, score in model.keyphrases(texts, count)
    ]
    if not reference:
        return {"keyphrases": phrases, "reference_keyphrases": None}
    for rank, phrase in enumerate(frequent_keyphrases(texts, count), start=1):
        score = round_score(1 / rank)
        phrases.append({"method": "frequency", "phrase": phrase, "score": score})
    return {
        "keyphrases": phrases,
        "reference_keyphrases": sorted(reference_keyphrases(texts, reference)),
    }
