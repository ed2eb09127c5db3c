"""ROUGE of extractive methods in any language, at equal length in words.

    python benchmarks/languages.py FILE... [--baseline CHECKOUT] [--sumy PYTHON]

prints a table in Markdown. A file has JSON lines with `article`, `highlights` and
`language`, all of one language. Longer summaries score higher, so each has as many
words as its reference: the sentences with the highest scores in the order of the text,
of which the last one taken is cut. ROUGE is of the variant of the language. Words of
Chinese, Japanese, Thai, Lao, Khmer and Burmese need the extra `languages`.

`--baseline` scores the same texts with the package of another checkout, and `--sumy`
our sentences with sumy in another interpreter, with its stemmer and stop words. The
columns are our ROUGE-1 / ROUGE-2 and its difference from them, with 95 % intervals by
paired bootstrap. `--record` writes our figures into docs/figures.json.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import record

from precis.model.bootstrap import bootstrap_intervals
from precis.model.extractive.methods import METHODS
from precis.model.rouge import Reference
from precis.model.text.words import word_breaker, words

_SCORES = Path(__file__).with_name("language_scores.py")
_HEADER = "| language | texts | words | method | ROUGE-1 / 2 |"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints the table."""
    parser = argparse.ArgumentParser(description="ROUGE of methods in any language.")
    parser.add_argument("files", nargs="+", type=Path, help="JSON lines, may be .gz")
    default = "lead,frequency,lexrank,textrank"
    parser.add_argument(
        "--methods", default=default, help=f"of {', '.join(METHODS)} ({default})"
    )
    parser.add_argument("--baseline", type=Path, help="another checkout")
    parser.add_argument("--sumy", help="an interpreter that has sumy")
    parser.add_argument("--limit", type=int, help="texts of each file, at most")
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/figures.json"
    )
    flags = parser.parse_args(argv)
    if word_breaker() is None:
        parser.error("words of some languages need the extra `languages`")
    peers = {"baseline": flags.baseline, "sumy": flags.sumy}
    peers = {name: value for name, value in peers.items() if value}
    print(_HEADER + "".join(f" to {name} |" for name in peers))
    print("|---" * (5 + len(peers)) + "|")
    for path in flags.files:
        for line in rows_of(read(path, flags.limit), flags, peers):
            print(line, flush=True)


def read(path: Path, limit: int | None) -> list[dict[str, Any]]:
    """The texts of a file that have a reference with words."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    return [text for text in texts if words(text["highlights"])][:limit]


def rows_of(
    texts: list[dict[str, Any]], flags: argparse.Namespace, peers: dict[str, Any]
) -> Iterator[str]:
    """The rows of the table on texts of one language."""
    (language,) = {text["language"] for text in texts}
    answers = score(sys.executable, "precis", flags.methods, texts)
    rouge = {"ours": judge(texts, answers)}
    if flags.baseline:
        answer = score(
            sys.executable, "precis", flags.methods, texts, str(flags.baseline)
        )
        rouge["baseline"] = judge(texts, answer)
    if flags.sumy:
        same = [
            text | {"sentences": answer["sentences"]}
            for text, answer in zip(texts, answers, strict=True)
        ]
        rouge["sumy"] = judge(texts, score(flags.sumy, "sumy", flags.methods, same))
    length = np.mean([len(words(text["highlights"])) for text in texts])
    means = {method: each.mean(axis=0) for method, each in rouge["ours"].items()}
    for method, ours in rouge["ours"].items():
        cells = [language, str(len(texts)), f"{length:.0f}", method]
        cells.append(pair(means[method]))
        for peer in peers:
            theirs = rouge[peer].get(method)
            cells.append("-" if theirs is None else difference(ours - theirs))
        yield f"| {' | '.join(cells)} |"
    if flags.record:
        best = max(means.keys() - {"lead"}, key=lambda method: means[method].sum())
        command = "python benchmarks/languages.py"
        for key, value, unit in (
            ("texts", str(len(texts)), "texts"),
            ("lead", pair(means["lead"]), "ROUGE-1 / 2"),
            ("best", pair(means[best]), "ROUGE-1 / 2"),
            ("method", f"*{best}*", "best but lead"),
        ):
            record(f"languages.{language}.{key}", value, unit, command)


def score(
    python: str,
    package: str,
    methods: str,
    texts: Sequence[dict[str, Any]],
    checkout: str | None = None,
) -> list[dict[str, Any]]:
    """The sentences of texts and their scores, from `language_scores.py`."""
    environment = os.environ | ({"PYTHONPATH": checkout} if checkout else {})
    done = subprocess.run(
        [python, str(_SCORES), package, methods],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout)


def judge(
    texts: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]
) -> dict[str, np.ndarray]:
    """ROUGE-1 and ROUGE-2 x 100 of each text by method, float64 [N, 2]."""
    rouge: dict[str, list[list[float]]] = {}
    for text, answer in zip(texts, answers, strict=True):
        reference = Reference(text["highlights"], text["language"])
        length = len(words(text["highlights"]))
        for method, scores in answer["scores"].items():
            found = reference.score(summary(answer["sentences"], scores, length))
            rouge.setdefault(method, []).append([found["rouge1"], found["rouge2"]])
    return {method: 100 * np.array(rows) for method, rows in rouge.items()}


def summary(sentences: Sequence[str], scores: Sequence[float], length: int) -> str:
    """The words of the best sentences, in the order of the text, `length` in all."""
    taken: dict[int, list[str]] = {}
    order: list[int] = np.argsort(-np.array(scores), kind="stable").tolist()
    for place in order:
        taken[place] = words(sentences[place])[:length]
        length -= len(taken[place])
        if not length:
            break
    return "\n".join(" ".join(taken[place]) for place in sorted(taken))


def pair(values: np.ndarray) -> str:
    """ROUGE-1 / ROUGE-2."""
    return " / ".join(f"{value:.1f}" for value in values)


def difference(values: np.ndarray) -> str:
    """The mean differences, [N, 2], with their intervals."""
    ends = zip(values.mean(axis=0), *bootstrap_intervals(values), strict=True)
    return " / ".join(
        f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" for mean, low, high in ends
    )


if __name__ == "__main__":
    main()
