"""Summaries by a language model behind an endpoint, which vLLM, llama.cpp, Ollama, TGI
or a cloud serves: `--bundle openai://HOST:PORT/v1#MODEL`.

An `Endpoint` stands where a `BulkSummarizer` would. The sources of documents are their
bytes in UTF-8, as the tokens of the model are not known here; passages are cut by them.
"""

import dataclasses
import re
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from precis.model.inference.batches import SEARCH, Cost, SearchedBatch
from precis.model.inference.bulk_summarizer import PendingWindow
from precis.model.inference.chat_client import Answer, ChatClient
from precis.model.inference.search_cost import summary_tokens
from precis.model.inference.summarizer import Summary
from precis.model.isolation import Failure, FailureError, attempt
from precis.model.text.language import ENGLISH, language_of
from precis.model.text.normalization import one_line
from precis.model.text.sentences import split_sentences

# Where neither the server nor `context_tokens` says how long its context is.
USUAL_CONTEXT = 4096
# The template of the chat, at most.
_TEMPLATE_TOKENS = 128
# Fewer than a token has in nearly every language, so that passages fit.
_BYTES_PER_TOKEN = 3
# What servers call the length of the context in their list of models.
_CONTEXT_NAMES = ("max_model_len", "n_ctx", "context_length", "context_window")
# What a model thinks before it answers.
_THOUGHTS = re.compile(r"\s*<think>.*?(</think>|\Z)", re.DOTALL)


class Utf8:
    """Stands in place of a tokenizer: the tokens of a text are its bytes."""

    surrounding_ids: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The bytes of each text, int32 [S]."""
        return [
            np.frombuffer(each.encode(), np.uint8).astype("int32") for each in texts
        ]

    encode_parts = encode

    def cut(self, ids: np.ndarray, length: int) -> np.ndarray:
        """The first bytes."""
        return ids[:length]

    def decode(self, ids: np.ndarray) -> str:
        """The text of bytes; a character that was cut is left out."""
        return ids.astype(np.uint8).tobytes().decode(errors="ignore").strip()


class Written(NamedTuple):
    """A summary in place of a hypothesis; of its tokens the number is known."""

    tokens: range
    summary: Summary


@dataclasses.dataclass(kw_only=True)
class Endpoint:
    """Summarizes documents by requests, each in a thread.

    Attributes:
      client: sends them.
      instruction: what the model is told before each document.
      requests: those that run at once, at most.
      answer_tokens: of an answer, at most.
      context_tokens: those that the model reads and writes; 0 asks the server.
      has_tokens: as of a `BulkSummarizer`.
    """

    has_tokens: ClassVar[bool] = False

    client: ChatClient
    instruction: str
    requests: int
    answer_tokens: int
    context_tokens: int = 0

    def __post_init__(self) -> None:
        self.source_tokenizer: Any = Utf8()
        self.max_source_tokens = self._room()
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._users = 0

    def _room(self) -> int:
        """The bytes of a source, at most."""
        facts: dict[str, Any] = {}
        if not self.context_tokens:
            facts = self.client.model_facts()
            facts |= facts.get("meta") or {}  # as llama.cpp has it
        told = (facts[name] for name in _CONTEXT_NAMES if facts.get(name))
        context = self.context_tokens or int(next(told, USUAL_CONTEXT))
        tokens = context - self.answer_tokens - _TEMPLATE_TOKENS
        return max(1, tokens * _BYTES_PER_TOKEN - len(self.instruction.encode()))

    def retain(self) -> None:
        """Registers a user."""
        with self._lock:
            self._users += 1
            self.client.closing.clear()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.requests)

    def release(self) -> None:
        """Removes a user; after the last one, no request is sent any more."""
        with self._lock:
            self._users -= 1
            if not self._users and self._threads:
                self.client.closing.set()
                self._threads.shutdown(cancel_futures=True)
                self._threads = None

    def pays_for_processes(self, sources: Sequence[np.ndarray]) -> bool:
        """Whether processes should search: the server has its own."""
        return False

    def begin(
        self, sources: Sequence[np.ndarray], *, in_processes: bool
    ) -> PendingWindow:
        """Begins to ask for summaries of sources, bytes as int32 [S] each."""
        assert self._threads  # There is a user.
        submit = self._threads.submit
        return PendingWindow(
            [[number] for number in range(len(sources))],
            [submit(self._summarize, source).result for source in sources],
            list(map(len, sources)),
            lambda written: [each.summary for each in written],
            request_costs,
        )

    def _summarize(self, source: np.ndarray) -> SearchedBatch:
        """Asks for the summary of a source."""
        prompt = f"{self.instruction}\n\n{self.source_tokenizer.decode(source)}"
        answer = attempt(prompt, self.client.ask, stage=SEARCH)
        ended = time.monotonic()
        if isinstance(answer, Failure):
            return SearchedBatch([answer], 0, 0, ended, ended)
        summary: Any = attempt(answer, read_summary, stage=SEARCH)
        tokens, read = range(answer.written_tokens or 0), answer.prompt_tokens or 0
        if not isinstance(summary, Failure):
            summary = [Written(tokens, summary)]
        return SearchedBatch([summary], read, read, ended - answer.seconds, ended)


def request_costs(batch: SearchedBatch, lengths: Sequence[int]) -> list[Cost]:
    """The cost of a request; of tokens that the server does not count None."""
    read, written = batch.source_tokens or None, summary_tokens(batch) or None
    return [Cost(read, written, batch.ended - batch.started)]


def read_summary(answer: Answer) -> Summary:
    """An answer as a summary, one sentence a line.

    Raises:
      FailureError: it holds no word.
    """
    text = _THOUGHTS.sub("", answer.text.encode(errors="ignore").decode(), count=1)
    sentences = split_sentences(text, language=language_of(text) or ENGLISH)
    if not sentences:
        detail = f"the answer holds no word, and ends with {answer.finish_reason}"
        if answer.finish_reason == "length":
            detail += "; a larger --max_summary_tokens lets the model write on"
        raise FailureError(Failure(SEARCH, "empty_answer", detail))
    return Summary(
        "\n".join(one_line(each.text) for each in sentences),
        answer.mean_log_prob,
        answer.mean_log_prob,
        None,
        answer.min_log_prob,
        was_cut=answer.finish_reason == "length",
    )
