"""Tests of the table of an evaluation: order and names of systems, differences from a
baseline, notes.
"""

from collections import Counter

import numpy as np
import pytest

from precis.pipelines.evaluate.evaluation_table import as_markdown, as_text, combine
from precis.pipelines.evaluate.options import EvaluateOptions
from precis.pipelines.evaluate.scoring import RangeScores


def part(number=0, *, scores, **settings):
    """The result of a task; the four measures of a score are 0.01 apart."""
    scores = {
        system: np.array(values, np.float64)[:, None] + np.arange(4) / 100
        for system, values in scores.items()
    }
    scored = len(next(iter(scores.values())))
    counts = Counter(rows=scored, scored=scored)
    defaults = {"most_sentences": Counter(), "keyphrases": {}, "measures": {}}
    defaults |= {"flags": {}, "variants": [("en", "rouge-score")] * scored}
    settings = {**defaults, **settings}
    return RangeScores(number=number, counts=counts, scores=scores, **settings)


def result_of(*parts, resamples=200, **settings):
    options = EvaluateOptions(input="run", resamples=resamples, **settings)
    return combine(parts, options)


NAN = float("nan")


def test_the_tables_have_the_systems_in_order_and_their_figures():
    """Baselines are named with their sentences."""
    names = "oracle textrank abstractive lead summary centroid random".split()
    most = Counter(lead=3, random=2, textrank=4, oracle=3)
    scores = {name: [place / 10] * 2 for place, name in enumerate(names)}
    result = result_of(part(scores=scores, most_sentences=most))
    rest = ["centroid", "textrank", "abstractive", "summary", "oracle"]
    systems = result["systems"]
    assert [each["system"] for each in systems] == ["lead-3", "random-2", *rest]
    assert [each["method"] for each in systems] == ["lead", "random", *rest]
    assert "oracle: an upper bound" in as_text(result)
    lead, other = {"lead": [0.2, 0.2]}, {"luhn": [0.25, 0.25]}
    result = result_of(part(scores={**lead, **other}, most_sentences=most))
    systems, gains, notes = as_text(result).split("\n\n")
    figures = [" ".join(line.split()) for line in systems.splitlines()]
    assert figures == [
        "system rows ROUGE-1 ROUGE-2 unsplit ROUGE-L ROUGE-Lsum",
        "lead-3 2 " + " ".join(f"{f}.0 [{f}.0, {f}.0]" for f in range(20, 24)),
        "luhn 2 " + " ".join(f"{f}.0 [{f}.0, {f}.0]" for f in range(25, 29)),
    ]
    head, line = gains.splitlines()
    assert head.split() == "minus lead-3 rows ROUGE-1 ROUGE-2 ROUGE-Lsum".split()
    assert line.split() == ["luhn", "2", *["+5.0", "[+5.0,", "+5.0]", "*"] * 3]
    assert "oracle" not in notes
    markdown = as_markdown(result)
    assert "|---|---:|---|---|---|\n| luhn | 2 | +5.0 [+5.0, +5.0] * |" in markdown


def test_differences_are_resampled_in_pairs_and_marked_beyond_zero():
    """The mean of each system lies within the interval of the other, but luhn is better
    in nearly every pair.
    """
    generator = np.random.default_rng(1)
    lead = generator.random(200)
    luhn = lead + 0.01 + generator.normal(0, 0.01, 200)
    scores = {"lead": lead, "luhn": luhn, "lsa": generator.random(200)}
    scores["worse"] = lead - 0.1
    result = result_of(part(scores=scores), resamples=2000)
    means = {system["method"]: system["rouge1"] for system in result["systems"]}
    assert means["luhn"]["low"] < means["lead"]["mean"] < means["luhn"]["mean"]
    assert means["luhn"]["mean"] < means["lead"]["high"]
    gains = {system["system"]: system["rouge1"] for system in result["differences"]}
    width = 2 * 1.96 * 0.01 / np.sqrt(200)
    gain = gains["luhn"]
    assert gain["low"] > 0.007
    assert gain["high"] - gain["low"] == pytest.approx(width, rel=0.2)
    assert gains["lsa"]["low"] < 0 < gains["lsa"]["high"]
    assert gains["worse"]["mean"] == pytest.approx(-0.1)
    touching = {name: figure["touches_zero"] for name, figure in gains.items()}
    assert touching == {"lsa": True, "luhn": False, "worse": False}
    table = as_text(result).split("\n\n")[1].splitlines()
    assert [line.count("] *") for line in table] == [0, 0, 3, 3] and "+1." in table[2]
    assert "*: significant: the interval of the paired bootstrap" in as_text(result)


def test_without_lead_nothing_is_compared_unless_a_baseline_is_named():
    parts = part(scores={"luhn": [0.1, 0.2], "lsa": [0.3, 0.3]})
    result = result_of(parts)
    assert (result["baseline"], result["differences"]) == (None, [])
    assert "minus" not in as_text(result) + as_markdown(result)
    assert "paired" not in as_text(result)
    (gain,) = result_of(parts, baseline="luhn")["differences"]
    assert gain["system"] == "lsa"
    assert gain["rouge1"]["mean"] == pytest.approx(0.15)
    # Systems without a common row are not compared.
    apart = result_of(part(scores={"lead": [0.1, NAN], "luhn": [NAN, 0.2]}))
    assert (apart["baseline"], apart["differences"]) == ("lead-0", [])


def measured(*rows):
    """The measures of a system in some rows: those of `MEASURED`."""
    return np.array([[*figures, not named, NAN] for *figures, named in rows])


def flags_of(*rows):
    """How many of these rows have each flag, and any."""
    return Counter(
        name for *_, named in rows for name in [*named, *["flagged"] * bool(named)]
    )


def test_the_table_of_measures_has_a_column_for_each_system():
    """And the result does not depend on the order of the parts."""
    good, empty = (10, 0.0, 0.0, []), (0, NAN, 0.0, ["empty"])
    bad = (4, 50.0, 0.25, ["repeated", "unsupported_name"])
    missing = np.full_like(measured(bad), NAN)
    measures = [
        (measured(good, empty), np.vstack([measured(bad), missing])),
        (measured(bad), measured(empty)),
    ]
    flags = [(flags_of(good, empty), flags_of(bad)), (flags_of(bad), flags_of(empty))]
    parts = []
    for number, (lead, reference) in enumerate(measures):
        scores = {name: [0.1 * number] * len(lead) for name in ("lead", "summary")}
        settings = {"measures": {"lead": lead, "reference": reference}}
        settings["flags"] = dict(zip(settings["measures"], flags[number], strict=True))
        settings["most_sentences"] = Counter(lead=3)
        parts.append(part(number, scores=scores, **settings))
    result = result_of(*parts)
    assert result == result_of(*parts[::-1])
    tables = as_text(result).split("\n\n")
    assert tables[2].splitlines() == [
        "measure                   lead-3  reference",
        "rows                        3       2",
        "words                       4.7     2.0",
        "novel bigrams %            25.0    50.0",
        "repeated trigrams %         8.3    12.5",
        "facts of the reference %   33.3     0.0",
        "any flag %                 66.7   100.0",
        "empty %                    33.3    50.0",
        "repeated %                 33.3    50.0",
        "unsupported_name %         33.3    50.0",
    ]
    assert "| novel bigrams % |  25.0 |  50.0 |\n" in as_markdown(result)
