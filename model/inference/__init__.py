"""Inference: documents in, summaries out.

`batches` groups documents by length, `searcher` searches a batch, `worker_pool` does so
in processes, `bulk` for windows of documents, `search_cost` counts; `summarizer` turns
token ids into ranked texts. `sentence_vectors` and `sentence_scorer` score sentences
with a network. `export` makes one graph of text cleaning (`text_operations`), tokenizer
and search. `attention` and `heat_map` show what a network reads.
"""
