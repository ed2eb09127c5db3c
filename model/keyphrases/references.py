"""References: the keyphrases that a reference summary names, and how many of them were
found.
"""

from collections.abc import Iterable, Iterator, Sequence

from precis.model.keyphrases.candidates import (
    Candidates,
    find_candidates,
    normalise_phrase,
)


def reference_keyphrases(sentences: Sequence[str], highlights: str) -> set[str]:
    """The candidates of a document that are found in its reference summary, in
    normalised form.

    Args:
      sentences: the article's.
      highlights: the reference, one sentence a line.
    """
    return found_in(highlights, set(find_candidates(sentences).normalised()))


def reference_phrases(sentences: Sequence[str], highlights: str) -> list[str]:
    """`reference_keyphrases` as the reference writes them, in its order; of one that
    comes again, as it is written first.

    Args:
      sentences, highlights: as there.
    """
    reference = find_candidates(highlights.splitlines())
    phrases: dict[str, str] = {}
    for start, end in _finds(reference, set(find_candidates(sentences).normalised())):
        phrases.setdefault(
            _name(reference, start, end), " ".join(reference.tokens.surface[start:end])
        )
    return list(phrases.values())


def found_in(highlights: str, names: set[str]) -> set[str]:
    """Those of some normalised candidates that a reference names.

    Of finds one within another the longest alone is one: `Steven Leifman` names neither
    `Steven` nor `Leifman`, unless the reference has them elsewhere too. Were all
    counted, no name could be more probable than each of its words, and a classifier
    would have to prefer `Leifman` to the full name.
    """
    reference = find_candidates(highlights.splitlines())
    return {_name(reference, start, end) for start, end in _finds(reference, names)}


def _finds(reference: Candidates, names: set[str]) -> Iterator[tuple[int, int]]:
    """Where a reference names one of some normalised candidates, as its first token and
    the one behind; of nested finds the longest.
    """
    forms = reference.normalised()
    ends: dict[int, int] = {}  # by the token a find starts at, where the longest ends
    for start, index in zip(
        reference.occurrence.tolist(), reference.candidate.tolist(), strict=True
    ):
        if forms[index] in names:
            ends[start] = start + int(
                reference.length[index]
            )  # shorter candidates come first
    reach = 0
    for start in sorted(ends):
        if (
            ends[start] > reach
        ):  # no find that starts before it ends where it does or later
            reach = ends[start]
            yield start, reach


def _name(candidates: Candidates, start: int, end: int) -> str:
    tokens = candidates.tokens
    return " ".join(tokens.stems[index] for index in tokens.stem[start:end].tolist())


def f1(predicted: Iterable[str], references: Iterable[str]) -> float:
    """The F1 of a document's keyphrases, 0 to 1; that of the first k is F1@k, and a
    corpus has the mean over its documents.

    Args:
      predicted: phrases as they are written; two count as equal when their normalised
          forms are.
      references: normalised forms, as `reference_keyphrases` gives them.
    """
    found, wanted = {normalise_phrase(phrase) for phrase in predicted}, set(references)
    return (
        2 * len(found & wanted) / (len(found) + len(wanted)) if found or wanted else 0.0
    )
