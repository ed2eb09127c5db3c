"""ROUGE of summaries of groups of news: ours, lead of each, centroid, LexRank, random.

    python benchmarks/groups.py --corpus 'jsonl:news.jsonl.gz' --output runs/groups

Groups are made of the test documents: one whose reference is like those of at least two
others (cosine of their terms by tf-idf), with up to nine of them. Nobody wrote a
reference for such a group. Each summary is compared with the references of the members:
with the mean over them, which rewards what several of them say, and with all of them as
one text. So the figures rank methods; they are not those of a set with references by
people, such as DUC 2004. Similar references make groups that agree more than those of a
real field do, and no method sees a reference.

Every summary has at most `--max_words` words. The selector of salience learns from the
other documents, the first time; `--output` keeps it. The baselines choose from all
sentences: lead of each is the first sentence of each member, then the second;
centroid (Radev et al. 2004, without its weight of positions), LexRank (Erkan and Radev
2004) and random have the trigram blocking of `precis summarize`.
"""

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import precis
from precis.model import rouge
from precis.model.bootstrap import bootstrap_intervals
from precis.model.extractive.config import BASELINES, SelectionConfig
from precis.model.extractive.methods import score_sentences
from precis.model.extractive.selection import select
from precis.model.extractive.terms import find_terms
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions

METHODS = ("lead", "random", "centroid", "lexrank")
_LEAST, _MOST = 3, 10
_ROWS_AT_ONCE = 500

Group = Sequence[Article]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, makes the groups, and prints the table."""
    parser = argparse.ArgumentParser(description="ROUGE of summaries of groups.")
    for name, default, what in (
        ("corpus", "", "news with references, as in `precis summarize`"),
        ("output", "runs/groups", "folder for records and the extractor"),
        ("limit", 0, "documents of the corpus, at most; 0 takes all"),
        ("groups", 500, "groups, at most"),
        ("max_words", 100, "words of a summary"),
        ("cosine", 0.35, "of two references of a group, at least"),
        ("epochs", 6, "of the extractor"),
        ("extractor", "", "bundle that knows no document of the corpus; all are tests"),
    ):
        text = f"{what} (default: {default})"
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    flags = parser.parse_args(argv)
    corpus = {"corpus": flags.corpus, "limit": flags.limit, "test_share": 0.4}
    selector = flags.selector or f"{flags.output}/extractor"
    if flags.selector:
        corpus |= {"test_share": 1.0, "validation_share": 0.0}
    else:
        records = f"{flags.output}/records"
        precis.prepare(output=records, oracle_sentences=5, **corpus)
        precis.train_selector(records=records, output=selector, epochs=flags.epochs)
    articles = list(read_test_articles(CorpusOptions(**corpus)))
    groups = list(itertools.islice(find_groups(articles, flags.cosine), flags.groups))
    neural = {"extractive_bundle": selector, "extractive": "neural"}
    summaries = baselines(groups, flags.max_words)
    for method, settings in (("centrality", {}), ("salience", neural)):
        summaries[method] = summarize(groups, flags.max_words, settings)
    print("\n".join(table(groups, summaries)))


def read_test_articles(options: CorpusOptions) -> Iterator[Article]:
    """The articles of the split test that have a reference."""
    for task in list_tasks(options):
        for article in read_task(task, options):
            if isinstance(article, Article) and article.document.split == "test":
                if (article.document.highlights or "").strip():
                    yield article


def find_groups(articles: Sequence[Article], least_cosine: float) -> Iterator[Group]:
    """Articles with similar references, each in one group at most."""
    references = [article.document.highlights or "" for article in articles]
    (terms,) = find_terms([references])
    matrix = terms.matrix(terms.unit_values)
    used: set[int] = set()
    for first in range(0, len(articles), _ROWS_AT_ONCE):
        cosines = (matrix[first : first + _ROWS_AT_ONCE] @ matrix.T).toarray()
        for place, of_article in enumerate(cosines, start=first):
            like = np.flatnonzero(of_article >= least_cosine)
            nearest = like[np.argsort(-of_article[like], kind="stable")].tolist()
            members = [each for each in nearest if each not in used][:_MOST]
            if place not in used and len(members) >= _LEAST:
                used.update(members)
                yield [articles[each] for each in members]


def baselines(groups: Sequence[Group], max_words: int) -> dict[str, list[str]]:
    """The summary of each group by each of `METHODS`, of so many words at most."""
    summaries: dict[str, list[str]] = {method: [] for method in METHODS}
    selection = SelectionConfig(sentences=max_words, max_words=max_words)
    for group in groups:
        members = [[each.text for each in article.sentences] for article in group]
        # All first sentences, then all second ones.
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*members))
        texts = list(filter(None, in_turn))
        (terms,) = find_terms([texts])
        for method in METHODS:
            scores = score_sentences(method, texts, terms)
            is_baseline = method in BASELINES
            chosen = select(texts, scores, selection=selection, is_baseline=is_baseline)
            lines = [" ".join(texts[place].split()) for place in sorted(chosen)]
            summaries[method].append("\n".join(lines))
    return summaries


def summarize(
    groups: Sequence[Group], max_words: int, settings: Mapping[str, Any]
) -> list[str]:
    """The summary of each group by `precis summarize`."""
    with tempfile.TemporaryDirectory() as folder:
        with Path(folder, "groups.jsonl").open("w", encoding="utf-8") as file:
            for number, group in enumerate(groups):
                for each in group:
                    line = {"article": each.document.article, "group": f"{number:05}"}
                    print(json.dumps(line), file=file)
        precis.summarize(
            corpus=f"jsonl:{folder}/groups.jsonl",
            output=f"{folder}/run",
            group_by="group",
            sentences=max_words,
            max_words=max_words,
            **settings,
        )
        rows = pq.read_table(f"{folder}/run/groups").sort_by("group_id").to_pylist()
    return [row["summary"] for row in rows]


def table(
    groups: Sequence[Group], summaries: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """The lines of the table: F1 x 100 of ROUGE-1, ROUGE-2 and ROUGE-Lsum."""
    sizes = [len(group) for group in groups]
    members = f"{np.mean(sizes):.1f} members ({min(sizes)} to {max(sizes)})"
    yield f"{len(groups)} groups, {members}"
    yield "| method | words | mean R1 / R2 / L | minus lead | all as one R1 / R2 / L |"
    yield "|---|---|---|---|---|"
    references = [
        [each.document.highlights or "" for each in group] for group in groups
    ]
    scores = {}
    for method, texts in summaries.items():
        of_groups = zip(references, texts, strict=True)
        means = [f1(each, [text] * len(each)).mean(axis=0) for each, text in of_groups]
        scores[method] = 100 * np.array(means)
    for method, texts in summaries.items():
        differences = scores[method] - scores["lead"]
        low, high = bootstrap_intervals(differences)
        interval = f"{differences[:, 1].mean():+.2f} [{low[1]:+.2f}, {high[1]:+.2f}]"
        whole = 100 * f1(["\n".join(each) for each in references], texts).mean(axis=0)
        cells = (
            method,
            f"{np.mean(list(map(count_words, texts))):.0f}",
            " / ".join(f"{value:.2f}" for value in scores[method].mean(axis=0)),
            f"R2 {interval}",
            " / ".join(f"{value:.2f}" for value in whole),
        )
        yield f"| {' | '.join(cells)} |"


def count_words(text: str) -> int:
    """The words of a summary, as `--max_words` counts them."""
    return len(words(text))


def f1(references: Sequence[str], summaries: Sequence[str]) -> np.ndarray:
    """ROUGE-1, ROUGE-2 and ROUGE-Lsum of each pair, float64 [N, 3]."""
    return np.stack(list(rouge.scores(references, summaries).values()), axis=1)


if __name__ == "__main__":
    main()
