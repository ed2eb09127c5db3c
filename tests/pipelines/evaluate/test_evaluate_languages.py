"""Tests of an evaluation of several languages: the variant of ROUGE of each row, means
by language by hand, and the report.
"""

from pathlib import Path

import duckdb
import pytest
from support.command_line import write_jsonl
from support.summary_rows import item, make_row, write_run

from precis.model import rouge
from precis.pipelines.evaluate import scoring
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.scoring import rouge_references
from precis.pipelines.report.report import report
from precis.pipelines.summarize.summarize import summarize

# A reference of four words or letters, and three of them in two parts: ROUGE-1 is
# 2 * 3 / (4 + 3), ROUGE-2 is 2 * 1 / (3 + 2), ROUGE-Lsum equals ROUGE-1.
PAIRS = {
    "en": ("Rain falls three days", "RAIN fall, days"),
    "ru": ("Дождь шёл три дня", "ДОЖДЬ шёл, дня"),
    "de": ("Größe zählt doch sehr", "GRÖSSE zählt - sehr"),
    "th": ("ไทยม", "ไทม"),
    "zh": ("北京大学", "北京 学"),
}
PART = [2 * 3 / (4 + 3), 2 * 1 / (3 + 2), 2 * 3 / (4 + 3)]


def row_of(number, language, reference, lead):
    """The shown summary is the reference."""
    texts = {"reference_summary": reference, "summary": reference}
    texts["extractive"] = [item("lead", 1, 0, lead)]
    return make_row(number, language=language, abstractive_summary=None, **texts)


def test_each_language_has_its_means_and_means_of_all_have_a_note(tmp_path, capsys):
    texts = [("zh", *PAIRS["zh"])]
    # In all but the first row of a language, lead is the reference.
    for language in ("en", "en", "en", "de", "ru", "ru", "th"):
        reference, lead = PAIRS[language]
        is_first = texts[-1][0] != language
        texts.append((language, reference, lead if is_first else reference))
    texts += [(None, *PAIRS["zh"]), ("en", PAIRS["ru"][0], "BBC")]
    texts.append(("de", "... 👍", "Gut"))
    rows = [row_of(number, *each) for number, each in enumerate(texts)]
    rows[6]["abstractive_summary"] = rows[6]["reference_summary"]
    run = write_run(tmp_path / "run", [[rows[:6]], [rows[6:]]])
    result = evaluate(input=run, resamples=5)
    text = (tmp_path / "run-evaluation" / "rouge.md").read_text()
    table = text.split("\n\n")[1].splitlines()
    whole = "100.0/100.0/100.0"
    assert [line.strip("| ") for line in table[:1] + table[2:]] == [
        "language | rows | variant | lead-1 | abstractive | summary",
        f"en | 3 | rouge-score | 95.2/80.0/95.2 | - | {whole}",
        f"ru | 2 | unicode | 92.9/70.0/92.9 | {whole} (1) | {whole}",
        f"de | 1 | unicode | 85.7/40.0/85.7 | - | {whole}",
        f"th | 1 | characters | 85.7/40.0/85.7 | - | {whole}",
        f"unknown | 1 | characters | 85.7/40.0/85.7 | - | {whole}",
        f"zh | 1 | characters | 85.7/40.0/85.7 | - | {whole}",
    ]
    printed = capsys.readouterr().out
    assert "means over all rows mix 3 variants of ROUGE, whose scores are" in printed
    assert "warning: 2 of 11 references are not scored: beside an English" in printed
    assert max(map(len, printed.split("\n\n")[1].splitlines())) < 100
    for name, description in rouge.VARIANTS.items():
        assert f"{name}: {description}; " in result["variant"]
    assert result["variant"].endswith("; F1, ROUGE-Lsum split at line breaks")
    assert result["rows_with_unreadable_reference"] == 2
    first, *_, last = result["languages"]
    lead_means = [(2 + part) / 3 for part in PART]
    names = ("rouge1", "rouge2", "rougeLsum")
    for of_language, rows, means in ((first, 3, lead_means), (last, 1, PART)):
        lead, summary = of_language["systems"]
        assert lead["system"] == "lead-1"
        assert lead["rows"] == summary["rows"] == of_language["rows"] == rows
        assert [lead[name] for name in names] == pytest.approx(means)
        assert [summary[name] for name in names] == [1.0] * 3
    scores = f"'{tmp_path}/run-evaluation/scores/*.parquet'"
    query = f"SELECT rouge_variant, count(*), count(rouge1) FROM {scores} GROUP BY 1"
    counted = {"rouge-score": 6, "unicode": 7, "characters": 6, None: 4}
    assert {name: rows for name, *rows in duckdb.sql(query).fetchall()} == {
        name: [count, count if name else 0] for name, count in counted.items()
    }


@pytest.mark.parametrize(
    ("languages", "mixed"),
    [
        *((("en", None), ""), (("de",), "")),
        *((("de", "ru"), "2 languages"), (("th", "zh"), "2 languages")),
        (("en", "de"), "2 variants of ROUGE"),
    ],
)
def test_one_language_has_no_table_of_languages(tmp_path, capsys, languages, mixed):
    """English rows whose language is not known count as English."""
    rows = [
        row_of(number, language, *PAIRS[language or "en"])
        for number, language in enumerate(languages)
    ]
    result = evaluate(input=write_run(tmp_path / "run", [[rows]]), resamples=5)
    printed = capsys.readouterr().out
    assert ("\nlanguage " in printed) == ("mix" in printed) == bool(mixed)
    assert f"means over all rows mix {mixed}" in printed or not mixed
    assert len(result["languages"]) == len(languages)
    if mixed:
        return
    assert printed.split("\n\n")[2].splitlines()[0] == (
        f"{rouge.VARIANTS[result['languages'][0]['variant']]}, F1, ROUGE-Lsum split at "
        "line breaks; x100, 95 % intervals from 5 bootstrap samples"
    )


def test_references_of_a_group_share_the_variant_of_their_letters():
    """Groups have no language."""
    texts = ["Дождь шёл три дня", "BBC", "👍"]
    russian, english = rouge_references(texts, None)
    assert russian.variant == english.variant == "unicode"
    scores = [each.score("дождь bbc")["rouge1"] for each in (russian, english)]
    assert scores == [2 * 1 / (4 + 2), 2 * 1 / (1 + 2)]
    (english,) = rouge_references(texts, "en")
    assert english.variant == "rouge-score"


def test_rows_without_a_language_are_scored_as_in_the_language_of_their_texts():
    """Rows of groups."""
    german = "Der Rat hat die größere Brücke über den Fluss im Mai gesperrt."
    row = dict.fromkeys(scoring.NEEDED_COLUMNS) | {"reference_summary": german}
    row |= {"group_id": "a", "summary": german.replace("größere", "gr ere")}
    table, _ = scoring.score_rows([row], number=0, split_sentences=False)
    (scored,) = table.to_pylist()
    assert scored["rouge_variant"] == "unicode"
    assert scored["rouge1"] == pytest.approx(2 * 11 / (12 + 13))


def test_the_report_of_several_languages_says_that_its_means_mix_them(tmp_path):
    articles = {
        "en": "The council has closed the old bridge. It was too weak for the trams.",
        "de": "Der Rat hat die alte Brücke gesperrt. Sie war zu schwach für Züge.",
        "zh": "市议会昨天关闭了这座老桥。桥梁太旧，已经不能承受电车的重量。" * 2,
    }
    lines = [{"article": each, "highlights": each[:30]} for each in articles.values()]
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    flags = {"extractive": "lead", "min_source_words": 0, "sentences": 1}
    summarize(corpus=corpus, output=tmp_path / "run", **flags)
    result = evaluate(input=tmp_path / "run", resamples=5)
    assert {each["language"] for each in result["languages"]} == articles.keys()
    page = Path(report(run=tmp_path / "run").path).read_text(encoding="utf-8")
    assert 'aria-label="Scores: language"' in page
    assert "; mean over 3 variants of ROUGE</span>" in page
    assert "means over all rows mix 3 variants of ROUGE" in page
