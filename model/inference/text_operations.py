"""The cleaning of `model.text` as TensorFlow operations, for exported graphs.

`body_tensor` and `normalise_tensor` give the same strings as `Article.body` and
`normalise`. The regular expressions of TensorFlow (RE2) have no look-ahead, and in them
`\\w`, `\\d` and `\\s` match ASCII characters only. So boilerplate is searched in a
sketch of the text. The sketch has as many characters as the text; every digit is `0`,
every letter beyond ASCII `é`, and all white space except the plain space a tab:

    text    Zürich (CNN)\u00a0-- Rain fell on ٣ May.
    sketch  Zérich (CNN)→-- Rain fell on 0 May.      → stands for the tab

The strings differ from those of `model.text` in two cases: characters that only one
side's version of Unicode knows, and credits in which one of the letters ſ, İ, ı and
U+212A (the Kelvin sign) is written for s, I, i or K.
"""

import re

import tensorflow as tf
import tensorflow_text

from precis.model.text.boilerplate import BOILERPLATE, MAX_BOILERPLATE_CHARACTERS
from precis.model.text.normalization import INVISIBLE

_LETTER = "é"
_LINE_BREAKS = r"[\n\r\v\f\x1c-\x1e\x{85}\x{2028}\x{2029}]"
# All white space except the plain space and the line feed.
_WHITE_IN_LINES = (
    r"\t\v\f\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}"
)
_WHITE = _WHITE_IN_LINES + r"\n"
# More characters than any text has.
_ALL_CHARACTERS = 1 << 30


def normalise_tensor(texts: tf.Tensor) -> tf.Tensor:
    """`normalise` of texts in UTF-8, string [B] -> string [B]."""
    texts = tf.strings.regex_replace(texts, _LINE_BREAKS, "\n")
    texts = tf.strings.regex_replace(texts, _invisible(), "")
    texts = tensorflow_text.normalize_utf8(texts, "NFC")
    texts = tf.strings.regex_replace(texts, "▁", "_")
    texts = tf.strings.regex_replace(texts, "␤", " ")
    texts = tf.strings.regex_replace(texts, f"[ {_WHITE_IN_LINES}]+", " ")
    texts = tf.strings.regex_replace(texts, r" ?\n[\n ]*", "\n")
    return tf.strings.regex_replace(texts, r"\A[\n ]+|[\n ]+\z", "")


def valid_utf8(texts: tf.Tensor) -> tf.Tensor:
    """Texts in UTF-8, string [B]; bytes that are none become U+FFFD."""
    return tf.strings.unicode_transcode(
        texts, input_encoding="UTF-8", output_encoding="UTF-8", errors="replace"
    )


def body_tensor(texts: tf.Tensor, *, strip_boilerplate: bool = True) -> tf.Tensor:
    """The bodies of articles, as `Article.body` has them.

    Args:
      texts: string [B], the articles as they were read; bytes that are no UTF-8 become
        U+FFFD.
      strip_boilerplate: whether to leave out the boilerplate before a story.

    Returns:
      string [B], each on one line.
    """
    texts = valid_utf8(texts)
    if strip_boilerplate:
        texts = tf.strings.substr(
            texts,
            _story_start(texts),
            tf.fill(tf.shape(texts), _ALL_CHARACTERS),
            unit="UTF8_CHAR",
        )
    return tf.strings.regex_replace(normalise_tensor(texts), "\n", " ")


def _story_start(texts: tf.Tensor) -> tf.Tensor:
    """The characters of boilerplate before each story, string [B] -> int32 [B]."""
    sketch = _sketch(texts)
    anything_but_place, place, no_place = _patterns()

    def strip(rest: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        left = tf.strings.regex_replace(rest, anything_but_place, "")
        without_place = tf.strings.regex_replace(left, place, "")
        is_no_place = tf.strings.regex_full_match(left, no_place)
        left = tf.where(is_no_place, left, without_place)
        return left, tf.reduce_any(left != rest)

    rest, _ = tf.while_loop(
        lambda _, is_new: is_new, strip, (sketch, tf.constant(True))
    )
    return tf.strings.length(sketch, unit="UTF8_CHAR") - tf.strings.length(
        rest, unit="UTF8_CHAR"
    )


def _sketch(texts: tf.Tensor) -> tf.Tensor:
    """The sketch of the part of each text that may be boilerplate, string [B]."""
    sketch = tf.strings.substr(
        texts,
        tf.zeros_like(texts, "int32"),
        tf.fill(tf.shape(texts), MAX_BOILERPLATE_CHARACTERS),
        unit="UTF8_CHAR",
    )
    sketch = tf.strings.regex_replace(sketch, r"\p{Nd}", "0")
    letters = "|".join(rf"[^\x00-\x7f\P{{{kind}}}]" for kind in ("L", "Nl", "No"))
    sketch = tf.strings.regex_replace(sketch, letters, _LETTER)
    return tf.strings.regex_replace(sketch, f"[{_WHITE}]", "\t")


def _patterns() -> tuple[str, str, str]:
    """Patterns of boilerplate, in RE2 and over sketches.

    A tokenised dateline must not contain certain words, which Python's pattern states
    by a look-ahead. Here a dateline is matched whatever its words, and a third pattern
    recognises texts in which it has a forbidden word. The place before its "(" consists
    of single words, so a forbidden word stands at the beginning or behind white space:

        the mayor said ( cnn ) --         begins like a dateline, but is none

    Returns:
      All boilerplate except tokenised datelines; tokenised datelines with any words;
      texts that begin like a tokenised dateline with a forbidden word.
    """
    patterns = dict(BOILERPLATE)
    place = patterns.pop("tokenised dateline")
    (forbidden,) = set(re.findall(r"\(\?!(\(\?:[^()]*\))\\b\)", place))
    place = place.replace(rf"(?!{forbidden}\b)", "")
    others = "|".join(map(_for_sketch, patterns.values()))
    no_place = rf"(?s:(?:[^(]*\s)?{forbidden}(?:[^\w{_LETTER}(][^(]*)?\(.*)"
    return rf"\A(?:\s*(?:{others}))+", rf"\A\s*{_for_sketch(place)}", no_place


def _for_sketch(pattern: str) -> str:
    """A pattern of Python's, followed by `\\s*`, in RE2 and over sketches."""
    pattern = re.sub(r"\[\^\\W\\d_ ?\]", f"[A-Za-z{_LETTER}]", pattern)
    classes = re.split(r"(\[[^\]]*\])", pattern)  # Every second part is a class.
    word = rf"\w{_LETTER}"
    pattern = "".join(
        part.replace(r"\w", word if index % 2 else f"[{word}]")
        for index, part in enumerate(classes)
    )
    # A letter follows, so there must be a space between it and the word before.
    pattern = pattern.replace(r"\b ?", " ")
    white, optional = r"(?=\s)", r"(?=\s))?"
    if pattern.endswith(white):
        return pattern.removesuffix(white) + r"\s+"
    if pattern.endswith(optional):
        return pattern.removesuffix(optional) + r"\s+|\s*)"
    return pattern + r"\s*"


def _invisible() -> str:
    """The characters that `normalise` removes, as a class of RE2.

    Lone surrogates are left out: they cannot occur in UTF-8.
    """
    characters = INVISIBLE.pattern.replace("\ud800-\udfff", "")
    escaped = re.sub(
        "[^-]", lambda match: rf"\x{{{ord(match[0]):x}}}", characters[1:-1]
    )
    return f"[{escaped}]"
