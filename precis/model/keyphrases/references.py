"""The keyphrases that a reference summary names, and the F1 of predicted ones."""

from collections.abc import Iterable, Sequence

from precis.model.keyphrases.candidates import find_candidates, normalise_phrase


def reference_phrases(sentences: Sequence[str], highlights: str) -> dict[str, str]:
    """The candidates of a document that its reference names: their normalised forms,
    each with the form of its first occurrence in the reference, in its order.

    Args:
      sentences: of the article.
      highlights: the reference, one sentence per line.
    """
    return named_phrases(highlights, set(find_candidates(sentences).normalised()))


def named_phrases(highlights: str, names: set[str]) -> dict[str, str]:
    """The phrases among `names` that a reference names, as `reference_phrases`.

    Of nested phrases only the longest counts: `Steven Leifman` names neither `Steven`
    nor `Leifman`, unless the reference has them elsewhere too. If all counted, no name
    could be more probable than each of its words, and a classifier would have to
    prefer `Leifman` to the full name.

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
        # A range that ends no later than an earlier one lies within it.
        if end > last_end:
            last_end = end
            surface = " ".join(reference.tokens.surface[start:end])
            phrases.setdefault(forms[named[start]], surface)
    return phrases


def f1(predicted: Iterable[str], references: Iterable[str]) -> float:
    """The F1 of the keyphrases of a document, 0 to 1.

    F1@k is that of the first k keyphrases; the figure of a corpus is the mean over its
    documents.

    Args:
      predicted: phrases in any written form; two are equal if their normalised forms
          are.
      references: normalised forms, those of `reference_phrases`.
    """
    predicted_names = {normalise_phrase(phrase) for phrase in predicted}
    reference_names = set(references)
    hits = len(predicted_names & reference_names)
    return 2 * hits / max(len(predicted_names) + len(reference_names), 1)
