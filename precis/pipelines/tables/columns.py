"""The columns of the tables: a name, a type and a description each.

A `?` behind a type says that the column may be null. `strings` is a list of strings,
`struct` and `list` have the fields that stand beside the table.
"""

import math
import re
from collections.abc import Sequence

import pyarrow as pa

# The last bits of a network's score depend on the documents that were computed beside
# it and on the processor. Rounded scores are equal but for those few that lie at a
# border of two rounded values. What is decided by a score is decided by the rounded
# one, so that the columns of a row agree with each other.
# A network's scores differ by some 1e-6 of their size from batch to batch. One
# significant digit more would make ten times as many rounded scores differ.
SCORE_DIGITS = 4
# A margin is the difference of two scores, so its error does not shrink with it.
MARGIN_DECIMALS = 3
_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))


def _columns(table: str, **nested: Sequence[pa.Field]) -> list[pa.Field]:
    """The columns of a table of names, types and descriptions.

    Args:
      table: a column a line; lines that begin further right go on with a description.
      **nested: the fields of structs, and of the structs in lists.
    """
    fields = []
    for line in re.split(r"\n    (?=\S)", table.strip()):
        name, kind, *words = line.split()
        is_nullable = kind.endswith("?")
        kind = kind.rstrip("?")
        if kind == "strings":
            stored = _STRINGS
        elif kind == "struct":
            stored = pa.struct(nested[name])
        elif kind == "list":
            item = pa.field("element", pa.struct(nested[name]), nullable=False)
            stored = pa.list_(item)
        else:
            stored = pa.type_for_alias(kind)
        metadata = {"description": " ".join(words)}
        fields.append(pa.field(name, stored, is_nullable, metadata))
    return fields


# The measures of every summary; `model.quality.measures.Quality` defines them.
_MEASURES = _columns("""
    words                int32    length of the summary in words
    novel_1grams_percent double?  1-grams that the article lacks (See et al. 2017); null
                                  where there are none
    novel_2grams_percent double?  2-grams that the article lacks; null as above
    novel_3grams_percent double?  3-grams that the article lacks; null as above
    novel_4grams_percent double?  4-grams that the article lacks; null as above
    coverage             double?  share of the words within an extractive fragment
                                  (Grusky et al. 2018); null without words
    density              double?  mean squared length of these fragments; null as above
    compression          double?  words of the article per word; null without words
    length_ratio         double?  words per word of the article; null where it has none
    repetition_rate      double   share of the trigrams that stand there before
    unsupported_numbers  strings  numbers that the article does not hold, in any form
    unsupported_dates    strings? weekdays, months and days that the article lacks; null
                                  where the article is in another language than English
    unsupported_names    strings? capitalised names that the article lacks; null as
                                  above, or where the summary has no capital letter
""")
_NETWORK_MEASURES = _columns(f"""
    mean_log_prob float? mean log-probability of the tokens with the end token, rounded
                         to {SCORE_DIGITS} significant digits; low_confidence is decided
                         by the rounded value; null where an endpoint gives none
    support_score double? as the column of this name, of abstractive_summary
    beam_margin   float? score of the best hypothesis less that of the second, rounded
                         to {MARGIN_DECIMALS} decimals; null with beam width 1
    line_confidence float? probability that the line is right that is least likely to
                         be, rounded as mean_log_prob; doubtful_line is decided by it;
                         null where the network wrote of more than a sentence
""")
_FLAGS = _columns("flags strings what the measures warn of; the names stand below")
# Of summaries that are only compared, the measures that `precis evaluate` shows.
_COMPARED = [
    *(_MEASURES[place] for place in (0, 2, 9)),  # words, 2-grams, repetition
    *_FLAGS,
]

SUMMARY_COLUMNS = _columns(
    """
    document_id          string   the source's own id, unique if the source's ids are,
                                  or the sha256 of the normalised article
    split                string   train, validation, test, or a name of the source
    source_file          string   the file of the corpus that holds the document
    source_position      string   place in source_file: byte, record, or row of a row
                                  group, each from 0
    content_sha256       string   sha256 of the normalised article, in hexadecimal
    duplicate_of         string?  with --deduplicate, document_id of the first document
                                  of the corpus with the same content; null for that
                                  document itself
    source_tokens        int32?   tokens of the article; null where no network read it,
                                  or an endpoint did, which has its own tokens
    seen_tokens          int32?   those that the network read, once each; null as above
    seen_ratio           double?  seen_tokens / source_tokens, or bytes that an endpoint
                                  was given by those of the article; null where neither
                                  read it, or a server has cut it
    chunks               int32?   passages that the network read, whose summaries are
                                  merged; null as above
    abstractive_method   string?  what the network wrote of: whole, sentences that the
                                  extractor chose, or head, chunk_merge of a document
                                  that is too long for it; null as above
    truncated            bool?    seen_ratio < 1 or cut by a server, and no extractor
                                  has read all sentences; null where none read it
    prompt_tokens        int32?   tokens that were read to write, of all passages, with
                                  instructions; null as above, or where an endpoint does
                                  not say
    written_tokens       int32?   tokens of the best hypothesis of each passage, their
                                  end tokens included; null as above. Where a limit
                                  makes a beam search again, those of the first search
                                  count, and of an endpoint those of both answers
    writing_seconds      double?  time of the requests, or the part of the searches by
                                  read and written tokens; null as above, and where
                                  SOURCE_DATE_EPOCH asks for rows without times
    article_words        int32    length of the article in words
    language             string?  language of the article as a code of ISO 639 (en);
                                  null where it is too short, or unclear
    summary              string   the text to show, one sentence a line; never longer
                                  than the article, in words
    summary_method       string   abstractive, the name of an extractive method, or
                                  source where the article is its own summary
    quality_flags        strings  what speaks against `summary`; the names stand below
    support_score        double?  how far the article supports `summary`, from 0 to 1,
                                  by the model of --checker; null without one, for an
                                  article that is its own summary, or has no sentence
    expected_rouge2      double?  F1 of ROUGE-2, 0 to 1, that `summary` is expected to
                                  have, by what the extractor finds important; null
                                  without an extractor that knows importance, and in
                                  other alphabets than the Latin one
    extractive_summary   string   sentences of extractive_method, one a line; of a
                                  headline its line
    extractive_method    string   the method behind extractive_summary
    extractive           list     the sentences that every method chose
    abstractive_summary  string?  the best candidate, empty where all are over the
                                  limit; null where no network read the article
    abstractive          list?    the candidates, best first, or the merged summary;
                                  null as above
    extractive_quality   struct   measures of extractive_summary
    abstractive_quality  struct?  measures of abstractive_summary; null without one
    other_quality        list     measures of the summaries by the other extractive
                                  methods, and of `summary` where it is the article
    keyphrases           list?    phrases that say what the article is about, each
                                  method's best first; null without a bundle for them,
                                  and in other languages than English
    reference_keyphrases strings? candidates of the article that its reference names, as
                                  stems; null as above, or without a reference
    reference_summary    string?  the highlights, one sentence a line; null if none
    reference_quality    struct?  measures of reference_summary; null without one, or
                                  where measuring failed
    model_id             string?  fingerprint of the bundle, or openai: and the name
                                  that an endpoint has for its model; null without both
    extractive_model_id  string?  that of the bundle behind neural; null without one
    keyphrase_model_id   string?  that of the bundle behind keyphrases, or null
    checker_model_id     string?  that of the bundle behind support_score, or null
    decode_id            string?  that of the decoding settings; null as model_id
    settings_id          string   fingerprint of all settings that a summary depends on,
                                  those of models and search included
    reused_from          string?  run_id of the earlier run that computed the summaries;
                                  null where this run did
    run_id               string   the run that wrote the row
    schema_version       int32    version of this schema
    """,
    extractive=_columns(f"""
    method string extractive method that chose the sentence
    rank   int32  place among the method's sentences by score, from 1
    score  double by the method, rounded to {SCORE_DIGITS} significant digits
    start  int64  offset of the first character in the article as it was read
    end    int64  offset past the last character: article[start:end] is text
    text   string the sentence, as it stands in the article
    line   string? the headline that the sentence was shortened to; null where it stands
                  as it is
    """),
    abstractive=_columns(
        f"""
    rank    int32  place among the candidates, from 1
    score   float? log-probability after the length penalty, rounded to {SCORE_DIGITS}
                   significant digits; of written sentences the mean, without those left
                   as they stand; as mean_log_prob where an endpoint wrote
    text    string the summary, one sentence a line
    support list?  the sentence of the article that each line was written of; null where
                   the network wrote of more than a sentence
        """,
        support=_columns("""
    start int32 its first character in the article
    end   int32 behind its last character
    confidence float? probability that the line is right: complete, grammatical and true
                      to the sentence, and tells something
        """),
    ),
    extractive_quality=[*_MEASURES, *_FLAGS],
    abstractive_quality=[*_MEASURES, *_NETWORK_MEASURES, *_FLAGS],
    other_quality=[
        *_columns("system string as extractive[].method; or source, as summary_method"),
        *_COMPARED,
    ],
    keyphrases=_columns(f"""
    method string classifier; or frequency, the baseline, only beside a reference
    phrase string the phrase, as the document writes it most often
    score  double probability by the classifier, or one over the rank by frequency,
                  rounded to {SCORE_DIGITS} significant digits
    """),
    reference_quality=_COMPARED,
)

GROUP_COLUMNS = _columns(
    """
    group_id             string?  the value of --group_by as text; null for the
                                  documents without one
    members              int64    documents of the group that have a row
    members_used         int64    those with a sentence among the candidates
    candidates           int32    sentences that the summary is chosen from: those of
                                  extractive in the members, of neural alone where it is
                                  there, equal ones once, and --max_group_candidates of
                                  them at most
    summary              string   the sentences, one a line; of a headline its line
    method               string   centrality, LexRank weighed by position; or salience,
                                  it times the score of the extractor
    sentences            list     the sentences of `summary`, one for each line
    flags                strings  empty: no member has a sentence (that is within the
                                  limit); single_member;
                                  reduced: members had more sentences than candidates
    members_digest       string   of the documents of the group, their sentences and
                                  values of --order_by: a group with the same one has
                                  the same summary
    settings_id          string   fingerprint of the settings of the documents' rows, of
                                  --group_by and the flags of groups beside it
    reused_from          string?  run_id of the earlier run that computed the summary;
                                  null where this run did
    run_id               string   the run that wrote the row
    schema_version       int32    version of this schema
    """,
    sentences=_columns(f"""
    document_id string the document; with the next two it names its row
    source_file string as in the summaries
    source_position string as in the summaries
    start  int64  offset of the first character in the article as it was read
    end    int64  offset past the last character: article[start:end] is text
    text   string the sentence, as it stands in the article
    score  double how central it is, 1 for the best candidate, rounded to
                  {SCORE_DIGITS} significant digits
    copies int64  documents among whose candidates it is, or nearly the same
    """),
)

SCORES_COLUMNS = _columns("""
    document_id          string   the document; with run_id it names its summaries
    run_id               string   the run that wrote the summary
    system               string   an extractive method as in extractive[].method, or
                                  abstractive, or summary; or reference, which has
                                  measures and no ROUGE
    rouge1               double?  F1 of ROUGE-1, 0 to 1; null for the reference,
                                  and where that is in another alphabet
    rouge2               double?  F1 of ROUGE-2, 0 to 1; null as above
    rougeL               double?  F1 of ROUGE-L of the unsplit texts; null as above
    rougeLsum            double?  F1 of ROUGE-Lsum, of texts split at line breaks, which
                                  papers on news call ROUGE-L; null as above
    words                int32?   length of the text in words; null where the run does
                                  not hold its measures
    novel_2grams_percent double?  2-grams that the article lacks; null as above or where
                                  there are none
    repetition_rate      double?  share of the repeated trigrams; null as words
    has_facts_of_reference bool?  whether all numbers, dates and names of the text stand
                                  in the reference; null as words and for systems but
                                  abstractive and summary
    flags                strings? what the measures warn of; null as words
""")


def known_score(score: float) -> float | None:
    """A rounded score; None of NaN, which stands for one that nobody gave."""
    return None if math.isnan(score) else round_score(score)


def round_score(score: float) -> float:
    """A score with SCORE_DIGITS significant digits."""
    return float(f"{score:.{SCORE_DIGITS - 1}e}")


def round_margin(margin: float | None) -> float | None:
    """A difference of two scores with MARGIN_DECIMALS decimals; None stays None."""
    return None if margin is None else round(margin, MARGIN_DECIMALS)
