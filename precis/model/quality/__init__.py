"""How far a summary can be trusted, measured against its source.

tokens     the words of a source and its summaries, in the form that is compared
numerals   numbers in a text by their value
names      capitalised names that the source does not hold
facts      numbers, dates and names that the source does not hold
measures   all measures of one summary
flags      the warnings, the thresholds of the measures, and the text that is shown
"""
