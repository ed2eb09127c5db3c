"""The summary in what language models write, in the forms of their chat templates."""

import time

import pytest

from precis.model.text.answer import summary_text

RAIN = "Rain fell on the coast. It was cold."
TOLD = "Use only facts that it states. Answer with the summary alone."
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    "written",
    [
        # thoughts
        f"<|channel|>analysis<|message|>We do.<|end|>{FINAL}{{}}<|return|>",
        f"<|channel|>commentary<|message|>Hm.<|end|>{FINAL}{{}}",
        "<|channel|>final <|constrain|>json<|message|>{}",
        "final<|message|>{}<|end|>",
        "analysisWe need a summary. Fine.assistantfinal{}",
        "<think>\nHm.\n</think>\n\n{}",
        "<think>a</think>\n<think>b</think>{}</think>",
        "<think>a <think> b</think>{}",
        "Hm. So?</think>\n\n{}",
        "<thinking>Hm.</thinking>{}",
        "<Reasoning>\nHm.\n</Reasoning>\n<answer>{}</answer>",
        "[THINK]Hm.[/THINK]{}",
        "◁think▷Hm.◁/think▷{}",
        "<seed:think>Hm.</seed:think>{}",
        "<|begin_of_thought|>Hm.<|end_of_thought|>\n{}",
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
        "<|channel>thought\nHm.<channel|>{}",
        "{}\n<think>Is it good?",
        # marks of turns
        *("{}<|im_end|>", "{}<|eot_id|>", "{} </s>", "{}\n<eos>", "[/INST] {}</s>"),
        "{}<|endoftext|>Another text. It is long.",
        "{}<|im_end|>\n<|im_start|>user\nSummarize it.<|im_end|>",
        "{}<｜end▁of▁sentence｜>",
        "{}<end_of_turn>\n<start_of_turn>user",
        "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
        # what stands around a summary
        "Sure! Here's a concise summary: {}",
        "Sure! Here's a concise summary:\n\n{}",
        "Here is a summary: {}",
        "Here’s a summary of the document in two sentences:\n\n**{}**",
        "Here is a summary.\n\n{}",
        "Here it is:\n\n{}",
        "Here are the three most important points of the document:\n{}",
        "Certainly! Below is the summary of the provided text: {}",
        "Sure, I can help with that! Here is a summary: {}",
        *("Summary: {}", "**Summary:** {}", "**Summary**\n\n{}", "# Summary\n\n{}"),
        *("Headline: {}", "TL;DR: {}", "Assistant: {}", "Voici un résumé :\n{}"),
        *("```\n{}\n```", "Here is the summary:\n```markdown\n{}\n```", "## {}"),
        "{}\n\nLet me know if you need anything else!",
        "{}\n\n(Word count: 8)",
        # what a model was told
        f"{TOLD}\n\nAnswer:\n{{}}",
        "- Use only facts that it states.\n{}",
        "{}\nAnswer with the summary",
        "<think>Hm.</think>\nSure! Here is a summary:\n\n**Summary:**\n{}<|im_end|>",
    ],
)
def test_the_summary_is_what_is_left(written):
    assert summary_text(written.replace("{}", RAIN), TOLD) == RAIN


@pytest.mark.parametrize(
    "written",
    [
        *("<think>Hm. So", "<|channel|>analysis<|message|>We", "analysisWe do"),
        *("Here is a summary:", "<|im_start|>", f"{TOLD}<|im_end|>\n<|im_start|>user"),
    ],
)
def test_what_holds_no_summary(written):
    assert summary_text(written, TOLD) == ""


@pytest.mark.parametrize(
    "summary",
    [
        "Here is where the council met: the old hall.",
        "Here is a summary of the council's decisions: it approved the budget.",
        "Here is the title of the new film: Dune.",
        "Here are three reasons why it met:\n- cost\n- time",
        "This is the points table\nArsenal 3",
        "It approved three projects:\n- a bridge\n- a school",
        "Summary judgment was granted. It came late.",
        *("Sure enough, rain fell.", "Certainly it met. It was cold."),
        "Yes, I can swim, she said. He drowned.",
        *("Title IX: schools sue.", "Headline inflation fell.", "Analysis: it fell."),
        "The <|im_end|> token ends a turn. It is special.",
        "It writes <think> and </think> around its thoughts.",
        *("Very <think>.", "The <summary> element opens.", "Use only facts."),
        "2**10 is 1024, and f**k is not 3 ** 4.",
    ],
)
def test_a_summary_that_begins_so_is_kept_whole(summary):
    assert summary_text(summary, TOLD) == summary


@pytest.mark.parametrize("space", [" ", "\n", " \n"])
def test_much_white_space_takes_no_time(space):
    started = time.monotonic()
    written = f"Rain fell.{space * 20_000}<b"
    assert summary_text(written, TOLD).split() == ["Rain", "fell.", "<b"]
    assert time.monotonic() - started < 10
