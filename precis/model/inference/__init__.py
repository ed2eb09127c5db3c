"""Inference: documents in, summaries out.

The steps from a window of documents to its summaries:

    sources        token ids int32 [S]: a document, its passages or its best sentences
      | batches.batches_by_length         longest first, about the same work each
    batches        int32 [B, S], padded to a multiple of 16
      | bulk_summarizer.BulkSummarizer    in this process or in search processes
      | searcher.TensorFlowSearcher       encode, then greedy or beam search, perhaps
      |                                   over a shortlist of the vocabulary
    hypotheses     n best of each source, or a failure of its document
      | batches.restore_order             back to the order of the documents
      | summarizer.distinct_summaries     token ids become texts, without duplicates
    summaries      of each source
      | merging, composition              one summary from several sources
    summary        of each document

passages           cuts long documents into several sources
batches            groups documents of similar length
writer             the interface of writers: a network here, or an endpoint
bulk_summarizer    the writer that searches with a network, in this process or in
                   search processes, and isolates a document that kills its process
endpoint           the writer that asks an endpoint
chat_client        sends requests to a server, with a maximum number at once
batch_client       sends requests to a server in batches
saved_model        writes a SavedModel that reads texts and writes summaries
search_imports     what the fork server of search processes imports
searcher           searches a batch with TensorFlow
ctranslate2_searcher
                   searches a batch with CTranslate2
shortlist          limits a network to the common pieces and those of the sources
fact_pieces        which pieces of a vocabulary spell numbers and names
summarizer         makes a searcher, and turns hypotheses into ranked texts
merging            merges the summaries of passages
composition        composes a summary from rewritten sentences
line_confidence    the probability that a written line is right
search_cost        adds up tokens and seconds
sentence_vectors   computes vectors of sentences with an encoder
selector_bundle    scores sentences with a selector
selector_network   the selector, computed by numpy
claim_checker      scores how well a document supports its summary
attention          reads attention weights, and draws a map for each head
"""
