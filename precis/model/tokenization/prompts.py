"""The prompts of a language model: an instruction and an article, in the chat template
of its checkpoint.

    head      <|im_start|>user and the instruction
    article   Rain fell.
    tail      <|im_end|>, <|im_start|>assistant

An article that is too long is cut off; the tail is kept.
"""

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from precis.model.tokenization.imported import ImportedTokenizer

TEMPLATE = "chat_template"  # its key in the result of `read_chat`
# Placeholder of the article while a template is rendered; no template changes it.
_ARTICLE = "\ue000article\ue001"


def prompt_parts(chat: Mapping[str, Any], instruction: str) -> tuple[str, str]:
    """The texts of a prompt before and after the article.

    Raises:
      ValueError: the template cannot be rendered.
    """
    if TEMPLATE not in chat:
        return "", f"\n\n{instruction}"
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # As transformers renders it, but without today's date, so that equal texts always
    # have equal prompts.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = functools.partial(json.dumps, ensure_ascii=False)
    message = {"role": "user", "content": f"{instruction}\n\n{_ARTICLE}"}
    try:
        text = environment.from_string(chat[TEMPLATE]).render(
            **chat,
            messages=[message],
            add_generation_prompt=True,
            enable_thinking=False,
        )
    except (TemplateError, TypeError, ArithmeticError, ValueError) as error:
        raise ValueError(f"the chat template cannot be used: {error}") from error
    parts = text.split(_ARTICLE)
    if len(parts) != 2:
        raise ValueError(
            f"the chat template writes a message {len(parts) - 1} times instead of once"
        )
    return parts[0], parts[1]


class PromptTokenizer(ImportedTokenizer):
    """Encodes articles as prompts of a language model, and decodes its answers."""

    def __init__(
        self, tokenizer: ImportedTokenizer, chat: Mapping[str, Any], instruction: str
    ) -> None:
        """Prepares the parts of a prompt.

        Args:
          tokenizer: the tokenizer of the language model.
          chat: the result of `read_chat`.
          instruction: the instruction before or after each article.
        """
        self._tokenizer = tokenizer._tokenizer
        self._head, self._tail = prompt_parts(chat, instruction)
        # A template includes the special tokens.
        first = () if TEMPLATE in chat else tokenizer.surrounding_ids[0]
        self._first = np.array(first, "int32")

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of prompts with these articles, int32 [S] each."""
        prompts = (f"{self._head}{text.strip()}{self._tail}" for text in texts)
        return [np.append(self._first, ids) for ids in self.encode_parts(prompts)]

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids, each without leading special tokens and up to
        the next one, after which a model not trained to chat writes on.
        """
        added = self._tokenizer.get_added_tokens_decoder()
        special = {token for token, each in added.items() if each.special}
        begun = (itertools.dropwhile(special.__contains__, row) for row in rows)
        return super().decode(
            itertools.takewhile(lambda id: id not in special, row) for row in begun
        )

    @functools.cached_property
    def surrounding_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and after an article. They are taken from a prompt with a
        letter as its article, as a tokenizer may join adjacent line breaks.
        """
        prompt, place = f"{self._head}a{self._tail}", len(self._head)
        encoding = self._tokenizer.encode(prompt, add_special_tokens=False)
        before = sum(end <= place for _, end in encoding.offsets)
        behind = sum(start > place for start, _ in encoding.offsets)
        head, tail = encoding.ids[:before], encoding.ids[len(encoding.ids) - behind :]
        return (*self._first.tolist(), *head), tuple(tail)
