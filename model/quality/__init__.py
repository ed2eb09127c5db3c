"""How far a summary can be trusted: what it shares with its source (`overlap`), what of
it the source does not hold (`numerals`, `facts`), all measures of one summary
(`measures`) and what they warn of (`flags`)."""
