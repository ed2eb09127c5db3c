-- Questions to a finished run, for DuckDB. Nothing is loaded beforehand:
--
--     cd runs/sample && duckdb < ../../examples/duckdb.sql
--
-- The run is `summaries/` of the folder where DuckDB is started, as `make run`
-- leaves it. docs/SCHEMA.md describes the columns.
CREATE OR REPLACE VIEW summaries AS
FROM read_parquet('summaries/data/**/*.parquet', hive_partitioning = true);

-- How many documents there are by where their summary comes from, and how long it is
-- beside the article.
SELECT
    summary_method,
    count(*) AS documents,
    round(avg(article_words)) AS article_words,
    round(avg(len(string_split_regex(trim(summary), '\s+')))) AS summary_words
FROM summaries
GROUP BY ALL
ORDER BY documents DESC;

-- The flags of quality, the most frequent first.
SELECT flag, count(*) AS documents
FROM summaries, unnest(quality_flags) AS flags(flag)
GROUP BY ALL
ORDER BY documents DESC, flag;

-- The summaries to look at first: the network was least sure of them.
SELECT document_id, abstractive[1].score AS score, summary
FROM summaries
WHERE abstractive IS NOT NULL
ORDER BY score, document_id
LIMIT 5;

-- The first sentence that each extractive method chose, and where it stands.
SELECT document_id, s.method, s.start, s.text
FROM summaries, unnest(extractive) AS sentences(s)
WHERE s.rank = 1
ORDER BY document_id, s.method
LIMIT 6;

-- A table for readers who want no nested columns.
COPY (
    SELECT document_id, split, summary, summary_method,
           array_to_string(quality_flags, ' ') AS quality_flags
    FROM summaries ORDER BY document_id
) TO 'summaries.csv' (HEADER);
