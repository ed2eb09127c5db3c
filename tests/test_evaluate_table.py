"""Tests of the table of an evaluation: order and names of systems, differences to a
baseline, notes.
"""

import numpy as np
import pytest

from precis.pipelines.evaluation_table import as_markdown, as_text, combine
from precis.pipelines.scoring import RangeScores


def part(number=0, *, scores, most_sentences=None, **settings):
    scores = {
        system: np.array(values, np.float64)[:, None] + np.arange(4) / 100
        for system, values in scores.items()
    }
    scored = len(next(iter(scores.values())))
    plain = {
        "rows": scored,
        "judged": 0,
        "truncated": 0,
        "unsplit": {"reference": 0, "abstractive": 0, "summary": 0},
        "unsplit_rows": 0,
    }
    settings = {
        **plain,
        "keyphrases": {},
        "most_sentences": most_sentences or {},
        **settings,
    }
    return RangeScores(number=number, scored=scored, scores=scores, **settings)


def result_of(*parts, resamples=200, **settings):
    return combine(parts, resamples=resamples, confidence=0.95, **settings)


NAN = float("nan")


def test_systems_are_in_order_and_baselines_named_with_their_sentences():
    names = [
        "oracle",
        "textrank",
        "abstractive",
        "lead",
        "summary",
        "centroid",
        "random",
    ]
    most = {"lead": 3, "random": 2, "textrank": 4, "oracle": 3}
    result = result_of(
        part(scores={name: [0.1, 0.2] for name in names}, most_sentences=most)
    )
    expected = [
        "lead-3",
        "random-2",
        "centroid",
        "textrank",
        "abstractive",
        "summary",
        "oracle",
    ]
    assert [system["system"] for system in result["systems"]] == expected
    assert [system["method"] for system in result["systems"]] == [
        "lead",
        "random",
        *expected[2:],
    ]
    assert "oracle: an upper bound" in as_text(result)
    assert "oracle" not in as_text(result_of(part(scores={"lead": [0.1]})))


def test_result_does_not_depend_on_the_order_of_the_parts():
    generator = np.random.default_rng(0)
    parts = [
        part(number, scores={"lead": generator.random(5), "luhn": generator.random(5)})
        for number in range(3)
    ]
    assert result_of(*parts) == result_of(*parts[::-1])
    assert result_of(*parts)["rows_scored"] == 15


def test_rows_that_a_system_has_no_summary_of_do_not_count_for_it():
    first = part(0, scores={"lead": [0.2, 0.4, 0.6], "abstractive": [0.5, NAN, 0.6]})
    second = part(1, scores={"lead": [0.8], "luhn": [0.1]})
    result = result_of(first, second)
    assert {
        system["method"]: (system["rows"], round(system["rouge1"]["mean"], 9))
        for system in result["systems"]
    } == {
        "lead": (4, 0.5),
        "luhn": (1, 0.1),
        "abstractive": (2, 0.55),
    }
    # Compared where both have one: 0.5 - 0.2 and 0.6 - 0.6; 0.1 - 0.8.
    assert {
        system["system"]: (system["rows"], round(system["rouge2"]["mean"], 9))
        for system in result["differences"]
    } == {
        "luhn": (1, -0.7),
        "abstractive": (2, 0.15),
    }


def test_differences_are_resampled_in_pairs():
    generator = np.random.default_rng(1)
    lead = generator.random(200)
    result = result_of(
        part(
            scores={
                "lead": lead,
                "luhn": lead + 0.01 + generator.normal(0, 0.01, 200),
                "lsa": generator.random(200),
            }
        ),
        resamples=2000,
    )
    gains = {system["system"]: system["rouge1"] for system in result["differences"]}
    # The systems lie within each other's intervals, and yet luhn is better in nearly
    # every pair.
    figures = {system["method"]: system["rouge1"] for system in result["systems"]}
    assert (
        figures["luhn"]["low"]
        < figures["lead"]["mean"]
        < figures["luhn"]["mean"]
        < figures["lead"]["high"]
    )
    assert gains["luhn"]["low"] > 0.007 and not gains["luhn"]["touches_zero"]
    assert gains["luhn"]["high"] - gains["luhn"]["low"] == pytest.approx(
        2 * 1.96 * 0.01 / np.sqrt(200), rel=0.2
    )
    assert (
        gains["lsa"]["low"] < 0 < gains["lsa"]["high"] and gains["lsa"]["touches_zero"]
    )
    table = as_text(result).split("\n\n")[1].splitlines()
    assert table[0].split()[:2] == ["minus", "lead-0"]
    assert [line.split()[0] for line in table[1:]] == ["lsa", "luhn"]
    assert table[1].count("*") == 0 and table[2].count("] *") == 3 and "+1." in table[2]
    assert "*: the interval of the paired bootstrap" in as_text(result)


def test_a_loss_is_marked_too():
    lead = np.random.default_rng(2).random(50)
    (loss,) = result_of(part(scores={"lead": lead, "luhn": lead - 0.1}))["differences"]
    assert (
        loss["rouge1"]["mean"] == pytest.approx(-0.1)
        and not loss["rouge1"]["touches_zero"]
    )


def test_without_lead_nothing_is_compared_unless_a_baseline_is_named():
    parts = part(scores={"luhn": [0.1, 0.2], "lsa": [0.3, 0.3]})
    result = result_of(parts)
    assert (result["baseline"], result["differences"]) == (None, [])
    assert "minus" not in as_text(result) + as_markdown(
        result
    ) and "paired" not in as_text(result)
    (gain,) = result_of(parts, baseline="luhn")["differences"]
    assert gain["system"] == "lsa" and gain["rouge1"]["mean"] == pytest.approx(0.15)


def test_systems_without_a_common_row_are_not_compared():
    result = result_of(part(scores={"lead": [0.1, NAN], "luhn": [NAN, 0.2]}))
    assert result["baseline"] == "lead-0" and result["differences"] == []


def test_keyphrase_figures_of_parts_are_joined():
    first = part(
        0,
        scores={"lead": [0.1]},
        keyphrases={"classifier": np.array([[0.2, 0.4], [0.4, 0.4]])},
    )
    second = part(
        1,
        scores={"lead": [0.1]},
        keyphrases={
            "classifier": np.array([[0.6, 0.4]]),
            "frequency": np.array([[0.1, 0.0]]),
        },
    )
    found = {one["system"]: one for one in result_of(first, second)["keyphrases"]}
    assert (found["classifier"]["rows"], found["classifier"]["f1_at_5"]["mean"]) == (
        3,
        pytest.approx(0.4),
    )
    assert found["classifier"]["f1_at_10"] == {
        "mean": pytest.approx(0.4),
        "low": pytest.approx(0.4),
        "high": pytest.approx(0.4),
    }
    assert found["frequency"]["rows"] == 1
