"""The keyphrases that a reference names, and the F1 of predicted keyphrases."""

from collections.abc import Iterable, Sequence

from precis.model.keyphrases.candidates import find_candidates, normalise_phrase


def reference_phrases(sentences: Sequence[str], highlights: str) -> dict[str, str]:
    """Finds the candidates of a document that its reference names. Returns the form of
    the first occurrence in the reference by normalised form, in the reference's order.

    Args:
      sentences: the sentences of the article.
      highlights: the reference, one sentence per line.
    """
    return named_phrases(highlights, set(find_candidates(sentences).normalised()))


def named_phrases(highlights: str, names: set[str]) -> dict[str, str]:
    """Finds the phrases among `names` that a reference names, as `reference_phrases`.

    If phrases are nested, only the longest counts: `Steven Leifman` does not name
    `Steven` and `Leifman`, unless the reference has them elsewhere too. If all counted,
    a word would always be at least as probable as a name with it, and a classifier
    would prefer `Leifman` to the full name.

    Args:
      highlights: the reference, one sentence per line.
      names: phrases in normalised form.
    """
    reference = find_candidates(highlights.splitlines())
    forms = reference.normalised()
    # The longest named phrase by its first token. Shorter candidates come first, so a
    # longer one replaces them.
    named = {
        start: index
        for start, index in zip(
            reference.occurrence.tolist(), reference.candidate.tolist(), strict=True
        )
        if forms[index] in names
    }
    phrases: dict[str, str] = {}
    last_end = 0
    for start in sorted(named):
        end = start + int(reference.length[named[start]])
        # A range that ends no later than an earlier range is within that range.
        if end > last_end:
            last_end = end
            surface = " ".join(reference.tokens.surface[start:end])
            phrases.setdefault(forms[named[start]], surface)
    return phrases


def f1(predicted: Iterable[str], references: Iterable[str]) -> float:
    """The F1 of the keyphrases of a document, from 0 to 1.

    F1@k is the F1 of the first k keyphrases; for a corpus, the mean over its documents.

    Args:
      predicted: phrases in any written form; their normalised forms are compared.
      references: normalised forms, from `reference_phrases`.
    """
    predicted_names = {normalise_phrase(phrase) for phrase in predicted}
    reference_names = set(references)
    hits = len(predicted_names & reference_names)
    return 2 * hits / max(len(predicted_names) + len(reference_names), 1)
