"""Keyphrases of a document: `candidates` to choose from, `features` of each, a
`classifier` that scores them, `ranking` of the best.
"""
