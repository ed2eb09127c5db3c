"""Tests of summaries by servers that shed load, refuse all requests, or read less than
they are given.
"""

import pytest
from support.chat_server import ChatServer
from support.command_line import exit_code, write_jsonl
from support.summarize_runs import rows_of, summarized

from precis.model.errors import DataError, JobError
from precis.model.inference.endpoint import cut_counts
from precis.pipelines.summarize.summarize import summarize

RAIN = "Rain fell on the coast all day. "


def tokens(prompt):
    """As many as a vocabulary of English makes."""
    return len(prompt.encode()) // 4


@pytest.fixture
def run(tmp_path, capfd):
    """A function that summarizes documents of so many sentences by a server, always by
    the same command; it returns the rows and what was said.
    """

    def run(server, sizes, **flags):
        articles = [f"Story {n} begins. " + RAIN * size for n, size in enumerate(sizes)]
        lines = [{"id": f"d{n}", "article": text} for n, text in enumerate(articles)]
        path = write_jsonl(tmp_path / "stories.jsonl", lines)
        flags |= {"corpus": path, "output": str(tmp_path / "run")}
        capfd.readouterr()
        with server.serve() as bundle:
            summarize(bundle=bundle, request_timeout=1.0, min_source_words=0, **flags)
        assert exit_code("verify", flags["output"]) == 0
        return rows_of(tmp_path / "run"), capfd.readouterr().err

    return run


@pytest.mark.parametrize("shared", [3_500, 9_000])
def test_no_document_is_lost_where_slots_share_a_context(run, shared):
    # 3,100 tokens each, so one runs at a time, or two; more of them fail together.
    server = ChatServer({7: ["beside", ...]}, tokens=tokens, shared=shared)
    rows, _ = run(server, [387] * 80, context_tokens=6000)
    assert len(rows) == 80
    assert not any(row["truncated"] for row in rows)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_fault_of_the_service_ends_the_job_that_goes_on(run, status, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    faults = {n: [(status, {"error": "no db sk-secret"}), ...] for n in range(-1, 4)}
    message = (
        f"127.0.0.1:.*/v1 answers no request: HTTP {status} .*no db \\*{{3}}.*key in "
        "OPENAI_API_KEY and .* the model 'tiny/model' of `bundle=`, and `request_json=`"
    )
    with pytest.raises(JobError, match=message):
        run(ChatServer(faults), [9] * 4)
    server = ChatServer({})
    assert len(run(server, [9] * 4)[0]) == 4 == server.paid.total()


def test_the_same_command_asks_again_what_a_server_did_not_answer(run):
    faults = {1: [(500, {}), ...], 2: ["stall", ...], 3: [(422, {"error": "no"}), ...]}
    failing, healthy = ChatServer(faults), ChatServer({3: faults[3]})
    message = "3 of 6 records .*, run the same command to retry 2 of them, or "
    with pytest.raises(DataError, match=message):
        run(failing, [9] * 6, max_failed_share=0.2)
    assert len(run(healthy, [9] * 6, max_failed_share=0.2)[0]) == 5
    assert {*failing.paid} == {-1, 0, 4, 5} and {*healthy.paid} == {-1, 1, 2}


def test_a_prompt_above_the_context_of_a_server_is_cut_again(run):
    server = ChatServer({}, tokens=tokens, context=700)
    rows, said = run(server, [9, 300, 300, 9], long_documents="chunk_merge")
    assert "; set --context_tokens to" in said
    assert [row["chunks"] for row in rows] == [1, 5, 5, 1]
    assert not any(row["truncated"] for row in rows)
    assert {row["seen_ratio"] for row in rows} == {1.0}
    read = [each["messages"][0]["content"] for each in server.bodies]
    counts = [each.count("Rain") for each in read if tokens(each) <= 700]
    # The first passage of both, and a further one, which is the same four times.
    assert sorted(filter(None, counts)) == [9, 9, 60, 60, 69] and 60 + 4 * 69 >= 300


def test_a_prompt_that_a_server_cuts_gives_a_flag(run):
    server = ChatServer({}, tokens=tokens, context=700, cuts=True)
    rows, said = run(server, [9, 80, 100, 300, 9])
    assert "the server cuts prompts off after 700 tokens; set --cont" in said
    for row, is_cut in zip(rows, [False, False, True, True, False], strict=True):
        assert row["truncated"] == is_cut
        assert ("truncated_source" in row["quality_flags"]) == is_cut
        assert row["seen_ratio"] == (None if is_cut else 1.0)


@pytest.mark.parametrize(
    ("sentence", "rate"),
    [(RAIN, 3.0), ("Весь день на побережье шёл дождь. ", 2.4), ("海岸整天下雨。", 2.3)],
)
def test_passages_fit_what_a_server_reads(sentence, rate):
    server = ChatServer({})
    with server.serve() as bundle:
        flags = {"bundle": bundle, "context_tokens": 1024, "min_source_words": 0}
        summarized([{"id": "a", "article": sentence * 200}], **flags)
    prompts = [each["messages"][0]["content"] for each in server.bodies]
    counts = [len(prompt.encode()) / rate for prompt in prompts]
    assert len(counts) > 1 and max(counts) <= 1024 - 256  # of the answer


# Each with the most and the least bytes of a token, in prose, of nine vocabularies: GPT
# 2, 3.5 and 4o, Claude 2, Qwen, DeepSeek, DeepSeek V4, Mistral 7B and Tekken.
PROSE = {
    "The city council approved a new budget on Monday evening. ": (4.84, 5.08),
    "Der Stadtrat hat am Montagabend einen neuen Haushalt beschlossen. ": (2.74, 4.72),
    "Городской совет утвердил новый бюджет в понедельник вечером. ": (1.70, 7.08),
    "وافق مجلس المدينة على ميزانية جديدة مساء يوم الاثنين. ": (1.85, 7.64),
    "नगर परिषद ने सोमवार शाम को नए बजट को मंजूरी दे दी। ": (1.69, 6.62),
    "საქალაქო საბჭომ ორშაბათს საღამოს დაამტკიცა ახალი ბიუჯეტი. ": (1.04, 8.82),
    "สภาเมืองได้อนุมัติงบประมาณใหม่เมื่อเย็นวันจันทร์": (1.50, 7.73),
    "市议会在经过六个多小时的辩论后,于周一晚间批准了新的预算。": (1.35, 4.79),
    "시의회는 월요일 저녁 긴 토론 끝에 새 예산안을 승인했다. ": (1.16, 4.57),
}


@pytest.mark.parametrize(("sentence", "rates"), PROSE.items())
def test_a_cut_prompt_is_told_from_a_whole_one_in_every_alphabet(sentence, rates):
    for rate in rates:
        texts = [sentence * repeats for repeats in (50, 90, 91, 200)]
        counts = [int(len(text.encode()) / rate) for text in texts]
        assert cut_counts(zip(texts, counts, strict=True)) == set()
        most = counts[0] + 1  # what the server reads
        cut = [min(count, most) for count in counts]
        assert cut_counts(zip(texts, cut, strict=True)) == {most}
    # A single document, of which a tenth is read.
    assert cut_counts([(texts[-1], counts[-1] // 10)]) == {counts[-1] // 10}
    # A server that does not count.
    assert cut_counts((text, 1) for text in texts) == set()
