"""Which documents are equal, and which an earlier run has.

document_keys  the step `scan`: keys of documents, in groups by bucket
join_keys      the step `join`: which text and which id stands where first
repeated_ids   ids that several documents have
earlier_rows   the rows of earlier runs, found by their place
keyed_arrays   files of records in numbered groups
"""
