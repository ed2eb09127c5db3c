"""Prompts of language models: templates, cuts, refusals."""

import json

import numpy as np
import pytest
from support import read_table
from support.small_checkpoint import write_tokenizer
from tokenizers import ByteLevelBPETokenizer

from precis.model.bundle.checkpoints.rotary import read_chat
from precis.model.errors import DataError
from precis.model.inference.batches import Hypothesis
from precis.model.inference.passages import PassageCutter
from precis.model.inference.summarizer import distinct_summaries
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.prompts import PromptTokenizer
from precis.model.tokenization.source import encode_sources

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}</s>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
ARTICLE = "Rain fell on the hills. A dog slept in the sun all day."


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = write_tokenizer(tmp_path_factory.mktemp("tokenizer"))
    return ImportedTokenizer(open(f"{folder}/tokenizer.json").read())


def write_template(folder, template):
    folder.joinpath("tokenizer_config.json").write_text(
        json.dumps({"bos_token": {"content": "<s>"}, "chat_template": template})
    )
    return str(folder)


def read(tokenizer, ids):
    """The text of tokens, special ones too."""
    return tokenizer._tokenizer.decode(ids.tolist(), skip_special_tokens=False)


def test_a_template_and_a_plain_prompt(tokenizer, tmp_path):
    assert read_chat(str(tmp_path)) == {}
    plain = PromptTokenizer(tokenizer, {}, "Say it.")
    assert read(tokenizer, plain.encode([ARTICLE])[0]) == f"<s>{ARTICLE}\n\nSay it."
    named = [{"name": name, "template": name} for name in ("tool_use", "default")]
    named[1]["template"] = "{{ bos_token }}" + TEMPLATE
    chat = read_chat(write_template(tmp_path, named))
    prompts = PromptTokenizer(tokenizer, chat, "Say it.")
    expected = f"<s><user>Say it.\n\n{ARTICLE}</s><assistant>"
    assert read(tokenizer, prompts.encode([f" {ARTICLE}\n"])[0]) == expected


def test_a_passage_has_the_ids_of_a_whole_prompt():
    """Also where a tokenizer joins line breaks at the end of a text, as GPT-2 does."""
    tokenizer = ByteLevelBPETokenizer()
    texts = ["Say it.\n\n", ARTICLE]
    tokenizer.train_from_iterator(texts, min_frequency=1, show_progress=False)
    assert "ĊĊ" in tokenizer.encode(texts[0]).tokens
    imported = ImportedTokenizer(tokenizer.to_str())
    for chat in ({}, {"chat_template": TEMPLATE}):
        prompts = PromptTokenizer(imported, chat, "Say it.")
        cutter = PassageCutter(prompts, task_prefix="", max_source_tokens=999)
        passages = [ids.tolist() for ids in cutter.cut([ARTICLE])]
        assert passages == [ids.tolist() for ids in prompts.encode([ARTICLE])]


def test_what_is_written_ends_where_another_turn_begins(tokenizer):
    """Also where the best hypotheses repeat what the model was told."""
    told = "Say it in one line. Use only facts."
    prompts = PromptTokenizer(tokenizer, {"chat_template": TEMPLATE}, told)
    again = f"A dog slept. {told}"
    texts = ("<s>Rain fell.</s>user Say it.</s>", told, again, "Rain fell.")
    texts += ("<think>Rain.</think>A dog slept.</s></s>",)
    rows = [ids.tolist() for ids in tokenizer.encode_parts(texts)]
    assert prompts.decode(rows)[0] == "Rain fell."
    ranked = [Hypothesis(row, -n, -n, None) for n, row in enumerate(rows)]
    summaries = distinct_summaries(ranked, prompts, told)
    assert [each.text for each in summaries] == ["Rain fell.", "", "A dog slept."]


def test_a_cut_prompt_keeps_its_tail(tokenizer):
    prompts = PromptTokenizer(tokenizer, {"chat_template": TEMPLATE}, "Say it.")
    head, tail = prompts.surrounding_ids
    limit = len(head) + 9 + len(tail)
    (source,) = encode_sources(prompts, [ARTICLE], max_source_tokens=limit)
    assert source.is_truncated and len(source.ids) == limit
    text = read(tokenizer, source.ids)
    assert text.startswith("<user>Say it.\n\nRain") and text.endswith("</s><assistant>")
    cutter = PassageCutter(prompts, task_prefix="", max_source_tokens=limit)
    passages = cutter.cut(["Rain fell on the hills.", " A dog slept in the sun."])
    assert len(passages) > 1
    for ids in passages:
        assert len(ids) <= limit
        np.testing.assert_array_equal(ids[-len(tail) :], tail)
        np.testing.assert_array_equal(ids[: len(head)], head)


REFUSED = read_table("refusals")["chat_templates"]
REFUSED += [(TEMPLATE + TEMPLATE, "the chat template writes a message 2 times")]


@pytest.mark.parametrize(("template", "words"), REFUSED)
def test_templates_that_are_refused(template, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read_chat(write_template(tmp_path, template))
