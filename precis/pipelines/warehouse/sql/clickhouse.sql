{% from "common.sql" import definitions, selected, insert_staging, views_of with context %}

{# The type says Nullable of what may be null. #}
{% macro plain(column) -%}
{{ column.name }} {{ column.type }}
{%- endmacro %}

{% macro described(column) -%}
{{ plain(column) }}{{ " COMMENT " ~ column.comment if column.comment }}
{%- endmacro %}

{# The key is the order of the table, which keeps the last row of each key. #}
{% macro create() %}
CREATE TABLE IF NOT EXISTS {{ table.name }} {{ definitions(described) }}
ENGINE = ReplacingMergeTree
ORDER BY ({{ table.key_names | join(", ") }})
SETTINGS allow_nullable_key = 1;
{% endmacro %}

{% macro structure(group) -%}
{% for column in table.columns if column.field not in group.values -%}
{{ plain(column) }}{{ ", " if not loop.last }}
{%- endfor %}
{%- endmacro %}

{# A bucket is read by its address over HTTP. #}
{% macro files(group) -%}
{% set names = "{" ~ group.names | join(",") ~ "}" if group.names | length > 1 else group.names[0] %}
{% set scheme, _, path = (group.place ~ names).rpartition("://") %}
{% set bucket, _, name = path.partition("/") %}
{% if scheme == "s3" -%}
s3({{ ("https://" ~ bucket ~ ".s3.amazonaws.com/" ~ name) | literal }}
{%- elif scheme == "gs" -%}
gcs({{ ("https://storage.googleapis.com/" ~ path) | literal }}
{%- else -%}
file({{ path | literal }}
{%- endif -%}
, 'Parquet', {{ structure(group) | literal }})
{%- endmacro %}

{% macro load() %}
CREATE OR REPLACE TABLE {{ table.staging }} {{ definitions(plain) }}
ENGINE = MergeTree
ORDER BY tuple();
{% for group in table.groups %}
{{ insert_staging() }}
SELECT {{ selected(group) }}
FROM {{ files(group) }};
{% endfor %}
{% endmacro %}

{% macro others() -%}
* EXCEPT ({{ table.names | join(", ") }})
{%- endmacro %}

{% macro same_key() -%}
{% for column in table.key -%}
{{ " AND " if not loop.first }}old.{{ column.name }} {{ "<=>" if column.is_nullable else "=" }} source.{{ column.name }}
{%- endfor %}
{%- endmacro %}

{# A row replaces all of the row with its key, so columns that the run does not have are
   taken over from that row. Rows arrive in blocks: readers may see a part of the run. #}
{% macro merge() %}
INSERT INTO {{ table.name }} ({{ table.names | join(", ") }}, {{ others() }})
SELECT source.{{ table.names | join(", source.") }}, old.{{ others() }}
FROM {{ table.name }} AS old FINAL
INNER JOIN {{ table.staging }} AS source ON {{ same_key() }};
INSERT INTO {{ table.name }} ({{ table.names | join(", ") }})
SELECT source.{{ table.names | join(", source.") }}
FROM {{ table.name }} AS old
RIGHT ANTI JOIN {{ table.staging }} AS source ON {{ same_key() }};
DROP TABLE {{ table.staging }};
{% endmacro %}

{% macro field(of, column) -%}
tupleElement({{ of }}, {{ column.text }})
{%- endmacro %}

{% macro items(list) %}

ARRAY JOIN {{ list }} AS list_item, arrayEnumerate({{ list }}) AS list_number
{%- endmacro %}

{# FINAL leaves out rows that a later load replaced. #}
{% macro view() %}
{{ views_of(items, "list_item", "list_number - 1", " FINAL", field=field) }}
{%- endmacro %}
