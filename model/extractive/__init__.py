"""Summaries made of the article's own sentences: `methods` scores them, `selection`
picks the best in document order.
"""
