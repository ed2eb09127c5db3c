"""Inference: documents in, summaries out.

What a window of documents goes through:

    sources        token ids int32 [S]: a document, its passages or its best sentences
      | batches.batches_by_length         longest first, about the same work each
    batches        int32 [B, S], padded to a multiple of 16
      | bulk_summarizer.BulkSummarizer    here, or in a process that may die
      | searcher.TensorFlowSearcher       encode, then greedy or beam search; of a large
      |                                   vocabulary only a shortlist may be written
    hypotheses     n best of each source, or the failure that costs its document
      | batches.restore_order             in the order of the documents again
      | summarizer.distinct_summaries     token ids become texts, equal ones once
    summaries      of each source
      | merging, composition              those of the passages or sentences as one
    summary        of each document

passages           cuts long documents into several sources
batches            groups documents of similar length
writer             what writes summaries promises: a network here or a server
bulk_summarizer    searches windows of documents, in processes where that pays, and
                   what becomes of a document that kills its process
endpoint           stands in its place where a server writes
chat_client        sends requests to a server, at most so many at once
search_imports     what the fork server of search processes imports
searcher           searches a batch with a network
ctranslate2_searcher
                   stands in its place where CTranslate2 computes the network
shortlist          a network with the common pieces and those of the sources alone
fact_pieces        which pieces of a vocabulary spell numbers and names
summarizer         makes a searcher, and turns hypotheses into ranked texts
merging            merges the summaries of passages
composition        puts a summary together from rewritten sentences, of those that are
                   complete and say what the sentences say
search_cost        adds up tokens and seconds
sentence_vectors   computes vectors of sentences with an encoder
selector_bundle    scores sentences with a selector
attention          reads attention weights, and draws a map for each head
"""
