"""Text: its normal form (`normalization`), news boilerplate (`boilerplate`,
`page_sentences`), `sentences` with offsets, `words`, stems (`porter`), `stop_words`,
and the content hash (`article`).
"""
