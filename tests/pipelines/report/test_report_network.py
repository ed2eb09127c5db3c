"""The report about a run of a network: order, search cost, flat and partitioned."""

from pathlib import Path

import pytest
from support.report_runs import documents_of

from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.report.report import report
from precis.pipelines.summarize.summarize import summarize

pytestmark = pytest.mark.slow


def test_the_page_of_a_network_is_the_same_of_a_flat_run(undisturbed, flags, tmp_path):
    layout = {"partition_by": "split", "flat": True}
    summarize(output=tmp_path / "flat", **flags, **layout)
    evaluate(input=tmp_path / "flat", resamples=5)  # Its scores change no order.
    pages = [
        Path(report(run=run, output=tmp_path / f"{run.name}.html").path).read_text()
        for run in (undisturbed, tmp_path / "flat")
    ]
    assert "summary_tokens_per_second" in pages[0]
    documents, flat = map(documents_of, pages)
    same = ("id", "split", "reference", "extractive", "source", "candidates")
    of_both = [[[d[n] for n in same] for d in page] for page in (documents, flat)]
    assert of_both[0] == of_both[1]
    # Equal candidates of a document are written once.
    document = next(each for each in documents if len(each["candidates"]) == 2)
    assert [each["rank"] for each in document["candidates"]] == [1, 2]
    assert document["candidates"][0]["score"] >= document["candidates"][1]["score"]
    assert "1 passage, head" in dict(document["facts"])["read by the network"]
    order = [round(line["log_prob"], 1) for line in documents if line["log_prob"]]
    assert order == sorted(order)
    reason = f"log-probability {documents[0]['log_prob']:.2f} per token"
    assert documents[0]["reason"].startswith(reason)
