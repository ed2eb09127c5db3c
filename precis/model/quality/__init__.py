"""Quality: measures of a summary against its source, and warnings.

tokens     the words of sources and summaries, in the form in which they are compared
numerals   the values of numbers in a text
dates      weekdays, months and days of a month in a text
names      capitalised names that the source does not hold
facts      numbers, dates and names that the source does not hold
measures   all measures of a summary
flags      the quality flags, and the choice of the summary that is shown
"""
