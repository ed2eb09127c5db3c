"""Extracts the summary from the output of a language model: removes thoughts, marks of
turns, words around the summary, repeated instructions, and Markdown.

    <think>Short.</think>Sure! Here is a summary:    **Rain fell.**<|im_end|>
                                                       Rain fell.
"""

import re

from precis.model.text.sentences import split_sentences

_THOUGHT = "(?:thinking|think|thoughts?|reasoning|analysis|scratchpad|reflection)"
_OPEN = rf"(?:<\|?(?:\w+[:_])?{_THOUGHT}\|?>|<\|channel>|\[think\]|◁think▷)"
_CLOSE = rf"(?:<(?:/|\|end_)(?:\w+[:_])?{_THOUGHT}\|?>|<channel\|>|\[/think\]|◁/think▷)"
# A mark of a turn, such as `<|im_end|>`, or a mark that encloses the whole answer.
_MARK = (
    r"(?:<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|(?:start|end)_of_turn)>"
    rf"|\[/?INST\]|</?(?:answer|summary|response|output)>|{_CLOSE})"
)
# The patterns removed from an answer. The name of a mark in running text stays.
_AROUND_ANSWERS = (
    # The channels of gpt-oss before the last one, with and without their marks.
    r"\A(?:(?:.*<\|channel\|>)?final\b.{0,40}?<\|message\|>|.*assistantfinal)",
    r"\A(?:(?:<\|start\|>assistant)?<\|channel\|>|(?-i:analysis(?=[A-Z]))).*",
    # Thoughts. The opening mark may be in the prompt, the closing mark cut off.
    rf"\A(?:\s*{_OPEN}.*?{_CLOSE})+",
    rf"\A(?:(?!{_OPEN}).)*?{_CLOSE}(?=.*\w)",
    rf"^[ \t]*{_OPEN}.*",
    # The marks at the beginning, and everything after the first mark that follows.
    rf"\A(?:{_MARK}\s*(?-i:assistant|model)?\s*)+",
    rf"(?:(?<![\s\"'“‘(`])|^[ \t]*){_MARK}.*|{_MARK}\s*(?:\Z|\n|{_MARK}).*",
)
_MARKDOWN = (
    r"(?m)^[ \t]*```(?:[\w-]*[ \t]*$\n?)?|```[ \t]*$|^(?:\#{1,6}|>)[ \t]+"
    r"|(?<![\w*])\*\*(?=[^\s*])|(?<=[^\s*])\*\*(?![\w*])"
)
_HERE = "(?:here|below|the following|this is|hier|voici|aquí|ecco|以下)"
_NOUN = (
    "(?:summar(?:y|ies|ization)|headline|overview|synopsis|recap|takeaways|摘要|总结|要約"
    "|zusammenfassung|überschrift|résumé|resumen|riassunto|resumo)"
)
_OF = r"(?: [^\n.!?:]{0,60}\b(?:document|article|text|passage|story|words|sentences?))?"
_SURE = r"\A(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|yes)"
_HELP = r",? (?:i can|i['’]\w+|let me)\b[^\n.!:]{0,60}?\b(?:help|summar)[^\n.!:]{0,60}"
# Phrases removed around a summary: with a colon, or on a separate line.
_AROUND_SUMMARIES = (
    rf"{_SURE}(?:(?:{_HELP})?[!,.:]\s*(?={_HERE})|! |[!.]\s*\n|{_HELP}[.!:]\s)",
    rf"\A{_HERE}[^\n.!?:：]{{0,40}}?(?:{_NOUN}|points)"
    rf"(?:[^\n:：]{{0,99}}[:：][ \t]*\n|{_OF}(?:\s?[:：]|[.!]?[ \t]*(?:\n|\Z)))",
    rf"\Ahere[^\n.!?:]{{0,40}}?\b(?:it is|you go|title|version|answer){_OF}:",
    rf"\A(?:(?:the|short|brief) )?(?:{_NOUN}|title|tl;?dr|key points|answer|assistant)"
    rf"(?: of{_OF})?(?:\s?[:：]|[ \t]*\n)",
    r"(?:\n[ \t]*|(?<=[.!?]) )(?:let me know if|would you like me to|i hope this (?:"
    r"helps|summ|meets)|\(?(?:word|character) count:? ?\d|[(\[]\d+ words)[^\n]*\Z",
)


def answer_text(written: str) -> str:
    """The output without thoughts and marks of turns."""
    return _without(_AROUND_ANSWERS, written)


def summary_text(written: str, instruction: str) -> str:
    """Extracts the summary from the output of a model.

    Args:
      written: the whole output.
      instruction: the instruction to the model; its sentences, and their beginnings,
        are removed from the output.
    """
    text = re.sub(_MARKDOWN, "", answer_text(written))
    told = [_plain(each.text) for each in split_sentences(instruction)]
    for each in reversed(split_sentences(text)):
        is_told = any(known.startswith(_plain(each.text)) for known in told)
        # Shorter sentences may belong to the summary.
        if is_told and each.text.count(" ") > 1:
            text = text[: each.start].rstrip(" \t") + text[each.end :]
    return _without(_AROUND_SUMMARIES, text)


def _without(patterns: tuple[str, ...], text: str) -> str:
    """A text without the first match of each pattern."""
    for each in patterns:
        text = re.sub(f"(?ims){each}", "", text.strip(), count=1)
    return text.strip()


def _plain(sentence: str) -> str:
    return " ".join(sentence.casefold().strip("\"'“”*-–• ").split())
