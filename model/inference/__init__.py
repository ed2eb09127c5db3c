"""Inference: documents in, summaries out.

batches            groups documents of similar length
searcher           searches a batch with a network
shortlist          a network with the common pieces and those of the sources alone
fact_pieces        which pieces of a vocabulary spell numbers and names
summarizer         turns hypotheses into ranked texts
composition        puts a summary together from rewritten sentences
passages           cuts long documents into several sources
merging            merges the summaries of passages
processes          calls functions in processes that may die, forked from one that has
                   imported what they need
search_imports     what search processes need
worker_pool        searches in processes
process_limits     how many processes and threads there are, and in which precision
bulk_summarizer    searches windows of documents, in processes where that pays
search_cost        adds up tokens and seconds
sentence_vectors   computes vectors of sentences with an encoder
sentence_scorer    scores sentences with an extractor
attention          reads attention weights, of pieces or whole words
heat_map           draws a map for each head
"""
