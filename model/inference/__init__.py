"""Inference: documents in, summaries out.

batches            groups documents of similar length
searcher           searches a batch with a network
shortlist          a network with the common pieces and those of the sources alone
fact_pieces        which pieces of a vocabulary spell numbers and names
summarizer         turns hypotheses into ranked texts
composition        puts a summary together from rewritten sentences
passages           cuts long documents into several sources
merging            merges the summaries of passages
isolated_search    searches a batch in halves where a document fails
processes          calls functions in processes that may die
fork_server        forks processes from one that has imported what they need
search_imports     what search processes need
worker_pool        searches in processes
process_limits     how many processes and threads there are
fastest_precision  the precision that a kind of chip searches fastest in
bulk_summarizer    searches windows of documents, in processes where that pays
search_cost        adds up tokens and seconds
sentence_vectors   computes vectors of sentences with an encoder
sentence_scorer    scores sentences with an extractor
text_operations    cleans text with TensorFlow operations
export             makes one graph of text cleaning, tokenizer and search
attention          reads attention weights
attention_words    makes them weights of whole words, and the mean of all heads
heat_map           draws a map for each head
word_map           draws one map with the summary below it
quantile_colours   the colours of weights by how many are smaller
"""
