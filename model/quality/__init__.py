"""How far a summary can be trusted, measured against its source.

tokens     the words of a source and its summaries, in the form that is compared
numerals   numbers in a text by their value
names      capitalised names that the source does not hold
facts      numbers, dates and names that the source does not hold
measures   all measures of one summary
flags      the warnings, and the thresholds of the measures
fallback   which text a row shows as its summary
"""
