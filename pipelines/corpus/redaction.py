"""Replaces personal data in documents before anything else sees them.

rule       text                              becomes
emails     write to jo@post.example now      write to [email] now
phones     call +44 20 7946 0958 now         call [phone] now
\\d{3}-\\d{2}   the number 123-45 is hers         the number [redacted] is hers
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import KeptField

# A regular expression of the user may need exponential time on some text.
_TIMEOUT_S = 10
_JSON_KINDS = ("json", "json_text")

# Every repetition is bounded, so each takes linear time.
_EMAIL = r"""
    (?<![\w.+%-]) [\w.+%-]{1,64} @ (?: [\w-]{1,63} \. ){1,8} [^\W\d_]{2,24} (?![\w-])
"""
_PHONE = r"""
    (?<! [\w$£€¥\#@+/=.,-] )      # not within a word, a path, a price or a number
    (?<! \d[\ \u00a0] )           # and not a later group of a longer number
    (?:
        # +44 20 7946 0958, 0044 20 7946 0958; no decimal number such as +51.50740000
        (?: \+ | 00 ) (?! \d+ [.,] \d+ (?! [\ .\-/]? \d ) )
            [1-9] (?: [\ \u00a0.\-/()]{0,2} \d ){7,14}
    |
        # 1-800-555-0199, (555) 123-4567
        (?: 1 [\ .\-] )? (?: \( [2-9]\d\d \) \ ? | [2-9]\d\d [\ .\-] )
            \d{3} [\ .\-] \d{4}
    |
        # 020 7946 0958, (0171) 123456, 06.12.34.56.78; no date such as 01.02.2024
        \(? (?! \d{1,2} ([./\ -]) \d{1,2} \1 \d{2,4} (?! \d | \1\d ) )
            0[1-9] (?: [\ \u00a0.\-/()]{0,2} \d ){7,10}
    )
    (?! \w | [.,:]\d )
"""
_BUILT_IN = {
    "emails": (re.compile(_EMAIL, re.VERBOSE), "[email]"),
    "phones": (re.compile(_PHONE, re.VERBOSE), "[phone]"),
}


class _Rule(NamedTuple):
    """A rule: its name in the counts, its pattern and what stands for a match."""

    name: str
    pattern: Any
    placeholder: str


class RedactionTimeout(Exception):
    """A regular expression took too long; the message names it."""


class Redactor:
    """The rules of `--redact`."""

    def __init__(self, rules: str) -> None:
        """Compiles the rules.

        Args:
          rules: one a line: names with commas between them, or a regular expression.

        Raises:
          UsageError: a rule is no valid regular expression, or matches the empty text.
        """
        self._rules = [
            rule for line in rules.splitlines() if line for rule in _parse(line)
        ]

    @property
    def names(self) -> list[str]:
        """The names of the rules; that of a regular expression is the expression."""
        return [rule.name for rule in self._rules]

    def redact(
        self, document: Document, kept: Iterable[KeptField]
    ) -> tuple[Document, Counter[str]]:
        """A document without what the rules match, and how often each matched.

        The article, the highlights and the text of the kept fields are searched; the
        id and the split are not.

        Raises:
          RedactionTimeout: a rule took too long.
        """
        counts: Counter[str] = Counter()
        is_json = {name for name, kind in kept if kind in _JSON_KINDS}
        metadata = dict(document.metadata)
        for name, value in metadata.items():
            if name in is_json and value is not None:
                content = self._value(json.loads(value), counts)
                metadata[name] = json.dumps(content, ensure_ascii=False)
            else:
                metadata[name] = self._value(value, counts)
        redacted = document._replace(
            article=self.text(document.article, counts),
            highlights=self._value(document.highlights, counts),
            metadata=metadata,
        )
        return redacted, counts

    def text(self, text: str, counts: Counter[str]) -> str:
        """A text without what the rules match; adds their matches to `counts`.

        Raises:
          RedactionTimeout: a rule took too long.
        """
        for name, pattern, placeholder in self._rules:
            if name in _BUILT_IN:
                text, count = pattern.subn(placeholder, text)
            else:
                text, count = _replace(pattern, placeholder, text, name)
            counts[name] += count
        return text

    def _value(self, value: Any, counts: Counter[str]) -> Any:
        """A value with the texts in it redacted."""
        if isinstance(value, str):
            return self.text(value, counts)
        if isinstance(value, list | tuple):
            return [self._value(item, counts) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item, counts) for key, item in value.items()}
        return value


def _parse(line: str) -> list[_Rule]:
    """The rules of a line of `--redact`."""
    names = [name.strip() for name in line.split(",")]
    if all(name in _BUILT_IN for name in names):
        return [_Rule(name, *_BUILT_IN[name]) for name in names]
    for name in names:
        question = suggestion(name, _BUILT_IN) if name.isalpha() else ""
        if question and name not in _BUILT_IN:
            raise UsageError(
                f"--redact {line}: {question} (the regular expression {name} is "
                f"written (?:{name}))"
            )
    import regex  # Here, because flags are read where its extra is missing.

    try:
        pattern = regex.compile(line)
    except regex.error as error:
        raise UsageError(
            f"--redact {line}: it is neither {' nor '.join(_BUILT_IN)} and no valid "
            f"regular expression: {error}"
        ) from error
    if pattern.search(""):
        raise UsageError(
            f"--redact {line}: it matches the empty text; write an expression that "
            "matches at least one character, as with + in place of *"
        )
    return [_Rule(line, pattern, "[redacted]")]


def _replace(pattern: Any, placeholder: str, text: str, name: str) -> tuple[str, int]:
    """A text with its matches replaced, and their number; empty matches are none."""
    count = 0

    def replacement(match: Any) -> str:
        nonlocal count
        count += bool(match.group())
        return placeholder if match.group() else ""

    try:
        return pattern.sub(replacement, text, timeout=_TIMEOUT_S), count
    except TimeoutError as error:
        raise RedactionTimeout(
            f"--redact {name} took more than {_TIMEOUT_S} s on one text"
        ) from error
