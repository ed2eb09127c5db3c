"""What `precis summarize` does where nobody names a method: the built-in selector reads
news in English, and `lead` takes the other documents.
"""

import json
import subprocess
import sys

import pyarrow.parquet as pq
from support.command_line import write_jsonl
from support.marked_corpus import LANGUAGES, marked_documents
from support.summarize_runs import first_rows, manifest_of, rows_of

from precis.pipelines.summarize.groups import _methods
from precis.pipelines.summarize.summary_settings import read_settings

NEWS = (
    "The river Orle rose by two metres on Monday. Firemen brought forty people to the "
    "town hall. The bridge at Caldmoor is closed until May, said the mayor. It was "
    "built in 1912. Farmers fear for their sheep. Schools will open again on Thursday. "
    "“We have never seen so much water,” said Ada Quill, who keeps the inn. The town "
    "will pay for new walls along the bank."
)
GERMAN = (
    "Der Fluss ist am Montag um zwei Meter gestiegen. Die Feuerwehr brachte vierzig "
    "Menschen in das Rathaus. Die Brücke bleibt bis Mai geschlossen. Die Schulen "
    "öffnen am Donnerstag wieder. Die Bauern fürchten um ihre Schafe."
)
DIALOGUE = (
    "Ada: Have you seen the water?\nBen: I have, it is high.\n"
    "Ada: The bridge is closed.\nBen: Then I will stay at home today.\n"
    "Ada: I will call you when it opens."
)
# A user without the extra `train` has no TensorFlow.
PROGRAM = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
import precis
precis.summarize(corpus=sys.argv[1], output=sys.argv[2], group_by="topic")
precis.evaluate(input=sys.argv[2])
"""


def test_each_document_has_the_method_for_its_kind(tmp_path):
    lines = [
        {"id": "news", "article": NEWS, "topic": "flood"},
        {"id": "german", "article": GERMAN, "topic": "flood"},
        {"id": "dialogue", "article": DIALOGUE, "topic": "talk"},
        {"id": "more", "article": NEWS.replace("Orle", "Tarn"), "topic": "news"},
    ]
    for line in lines:
        line["highlights"] = "The river rose and the bridge is closed until May."
    corpus = write_jsonl(tmp_path / "corpus.jsonl", lines)
    command = [sys.executable, "-c", PROGRAM, corpus, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = {row["document_id"]: row for row in rows_of(tmp_path / "run")}
    methods = {
        name: (row["extractive_method"], {each["method"] for each in row["extractive"]})
        for name, row in rows.items()
    }
    both, lead = ("neural", {"neural", "lead"}), ("lead", {"lead"})
    assert methods == {"news": both, "more": both, "german": lead, "dialogue": lead}
    assert 0 <= rows["news"]["expected_rouge2"] <= 1
    assert rows["german"]["expected_rouge2"] is None
    assert manifest_of(tmp_path / "run")["extractive_bundle"] == "builtin:news-en"
    scores = json.loads((tmp_path / "run-evaluation/rouge.json").read_text())
    # The other documents are no empty summaries of neural.
    rows = {each["system"]: each["rows"] for each in scores["systems"]}
    assert rows == {"neural": 2, "lead-3": 4, "summary": 4}
    groups = pq.read_table(tmp_path / "run/groups").to_pylist()
    # Salience needs the scores of the selector for all members.
    found = {row["group_id"]: (row["method"], row["members_used"]) for row in groups}
    assert found.pop("news") == ("salience", 1)
    assert found == {"flood": ("centrality", 2), "talk": ("centrality", 1)}


def test_a_group_takes_no_sentences_that_a_reference_or_chance_chose():
    settings = read_settings({"extractive": "neural,oracle,random"})
    assert list(_methods(settings)) == ["neural", "lead"]


def test_the_builtin_selector_reads_no_other_language():
    for row in first_rows(marked_documents(dict.fromkeys(LANGUAGES, 1))):
        is_english = row["language"] == "en"
        assert row["extractive_method"] == ("neural" if is_english else "lead")
        dates = row["extractive_quality"]["unsupported_dates"]
        assert dates == ([] if is_english else None)
