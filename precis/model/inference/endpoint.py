"""Summaries by a language model behind an endpoint, which vLLM, llama.cpp, Ollama, TGI
or a cloud serves: the bundle openai://HOST:PORT/v1#MODEL.

The tokens of the model are not known here. So the tokens of a source are its bytes in
UTF-8, and passages are cut by their number of bytes.
"""

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from precis.model.inference.batches import SEARCH, SearchedBatch
from precis.model.inference.chat_client import Answer, ChatClient
from precis.model.inference.summarizer import Summary, shorten
from precis.model.inference.writer import PendingWindow, Writer
from precis.model.isolation import PENDING, Failure, attempt
from precis.model.progress.stages import say
from precis.model.text.answer import summary_text
from precis.model.text.language import ENGLISH, language_of
from precis.model.text.length_limit import LengthLimit, count_words
from precis.model.text.normalization import one_line
from precis.model.text.sentences import split_sentences

_LEAST_BYTES = 256
# Token counts below this are not taken for the context of a server.
_LEAST_CONTEXT = 128
# If prompts with the same token count differ in bytes by more than this factor, the
# server has cut them off.
_SPREAD = 1.1


class Utf8:
    """A tokenizer whose tokens are the bytes of a text."""

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
        """The text of bytes; incomplete characters are left out."""
        return ids.astype(np.uint8).tobytes().decode(errors="ignore").strip()


class Endpoint(Writer):
    """Summarizes documents by requests, each in a thread."""

    def __init__(
        self, client: ChatClient, instruction: str, tokens: int, limit: LengthLimit
    ) -> None:
        """Stores its arguments.

        Args:
          client: sends the requests; an attribute.
          instruction: the instruction before each document.
          tokens: the maximum number of tokens of the instruction and a source.
          limit: the length limit of a summary. If not even the first sentence of an
            answer is within it, the model is asked once more.
        """
        self.source_tokenizer: Any = Utf8()
        self.client, self._instruction = client, instruction
        self._tokens, self._limit = tokens, limit
        self._lock = threading.Lock()
        self.say_once = functools.cache(say)

    def room(self, text: str) -> int:
        """The maximum number of bytes of a text that the model reads at once."""
        # Low estimates of bytes per token: 3 if most letters have one byte, otherwise
        # 2, as most vocabularies have fewer long pieces of other letters.
        size = 2 if len(text.encode(errors="ignore")) > 1.5 * len(text) else 3
        room = self._tokens * size - len(self._instruction.encode())
        return max(_LEAST_BYTES, room)

    def _begin(self) -> None:
        self.client.closing.clear()
        self._threads = ThreadPoolExecutor(self.client.requests)

    def _end(self) -> None:
        """Stops sending requests."""
        self.client.closing.set()
        self._threads.shutdown(cancel_futures=True)

    def begin(self, sources: Sequence[np.ndarray]) -> PendingWindow:
        """Begins to ask for summaries of sources, which are bytes, int32 [S] each."""
        submit = self._threads.submit
        prompts: list[tuple[str, int]] = []
        counts = functools.cache(lambda: cut_counts(prompts))

        def read(answers: Sequence[Answer]) -> list[Summary] | Failure:
            first, *further = map(self._read, answers)
            if isinstance(first, Failure):
                return first
            if (count := answers[0].prompt_tokens) in counts():
                self.say_once(
                    f"precis summarize: the server cuts prompts off after {count} "
                    "tokens; set `context_tokens=` to its context length"
                )
                first = first._replace(has_read_all=False)
            # Further answers count only if they hold a word.
            return [first, *(each for each in further if isinstance(each, Summary))]

        return PendingWindow(
            [[number] for number in range(len(sources))],
            [submit(self._summarize, source, prompts).result for source in sources],
            list(map(len, sources)),
            read,
        )

    def _summarize(
        self, source: np.ndarray, prompts: list[tuple[str, int]]
    ) -> SearchedBatch:
        """Asks for the summary of a source; adds the prompt and its number of tokens to
        `prompts`.
        """
        text = self.source_tokenizer.decode(source)
        prompt = f"{self._instruction}\n\n{text}"
        answer = attempt(prompt, self.client.ask, stage=SEARCH)
        answers = [] if isinstance(answer, Failure) else [answer]
        prompts += [(prompt, each.prompt_tokens) for each in answers]
        if answers and (size := self._excess(answers[0], text)):
            prompt += f"\n\nYour last answer is too long: {size}."
            further = attempt(prompt, self.client.ask, stage=SEARCH)
            if isinstance(further, Failure) and further.reason == PENDING:
                answers, answer = [], further
            elif not isinstance(further, Failure):
                # The first answer carries the cost of both.
                written = answers[0].written_tokens + further.written_tokens
                answers = [answers[0]._replace(written_tokens=written), further]
        ended = time.monotonic()
        read = sum(each.prompt_tokens for each in answers)
        started = ended - sum(each.seconds for each in answers)
        return SearchedBatch([answers or answer], read, read, started, ended)

    def _excess(self, answer: Answer, text: str) -> str:
        """The size of an answer, if nothing of it is within the limit; otherwise ""."""
        if not self._limit:
            return ""
        summary = attempt(answer, self._read, stage=SEARCH)
        language = language_of(text) or ENGLISH
        if isinstance(summary, Failure) or shorten([summary], self._limit, language):
            return ""
        return f"{count_words(summary.text)} words, {len(summary.text)} characters"

    def _read(self, answer: Answer) -> Summary | Failure:
        """An answer as a summary, one sentence per line; a failure if it holds no
        word.
        """
        text, is_finished = answer.summary.text, answer.summary.is_finished
        text = summary_text(text.encode(errors="ignore").decode(), self._instruction)
        sentences = split_sentences(text, language=language_of(text) or ENGLISH)
        if not sentences:
            detail = "the answer contains no words"
            if not is_finished:
                detail += "; raise max_summary_tokens to let the model finish"
            return Failure(SEARCH, "empty_answer", detail)
        lines = "\n".join(one_line(each.text) for each in sentences)
        return answer.summary._replace(text=lines)


def cut_counts(prompts: Iterable[tuple[str, int]]) -> set[int]:
    """The token counts at which a server has cut off prompts.

    A count is such a cut if it is smaller than the number of words of the prompt, or
    than an estimate for text without spaces. The largest count is one too if the bytes
    of the prompts with this count differ by more than the factor `_SPREAD`.

    Args:
      prompts: the prompts, each with the number of tokens that the server has counted.
    """
    cut, sizes = set(), defaultdict[int, list[int]](list)
    for prompt, count in prompts:
        size = len(prompt.encode(errors="ignore"))
        sizes[count].append(size)
        if count < max(len(prompt.split()), (size - len(prompt)) // 8):
            cut.add(count)
    most = max(sizes, default=0)
    if sizes and max(sizes[most]) > _SPREAD * min(sizes[most]):
        cut.add(most)
    return {count for count in cut if count >= _LEAST_CONTEXT}
