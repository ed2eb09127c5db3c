{% from "common.sql" import selected, insert_staging, definitions, merge_rows, views_of with context %}

{# An array is never null. #}
{% macro definition(column) -%}
{{ column.name }} {{ column.type }}{{ "" if column.is_nullable or column.is_list else " NOT NULL" }}
{%- endmacro %}

{% macro described(column) -%}
{{ definition(column) }}{{ " OPTIONS (description = " ~ column.comment ~ ")" if column.comment }}
{%- endmacro %}

{% macro create() %}
CREATE TABLE IF NOT EXISTS {{ table.name }} {{ definitions(described) }};
{% endmacro %}

{% macro files(group) -%}
format = 'PARQUET', enable_list_inference = TRUE, uris = [
{% for name in group.names %}
  {{ (group.place ~ name) | literal }}{{ "," if not loop.last }}
{% endfor %}
]
{%- endmacro %}

{# Files without columns in their folders are loaded, which costs nothing. Others are
   read as an external table, which has no NOT NULL, beside the values of their folder. #}
{% macro load() %}
CREATE OR REPLACE TABLE {{ table.staging }} {{ definitions(definition) }};
{% for group in table.groups %}
{% if not group.values %}
LOAD DATA INTO {{ table.staging }} (
{%- for column in table.columns %}{{ definition(column) }}{{ ", " if not loop.last }}{% endfor %})
FROM FILES ({{ files(group) }});
{% else %}
CREATE OR REPLACE EXTERNAL TABLE {{ table.external }} (
{%- for column in table.columns if column.field not in group.values -%}
{{ column.name }} {{ column.type }}{{ ", " if not loop.last }}
{%- endfor %})
OPTIONS ({{ files(group) }});
{{ insert_staging() }}
SELECT {{ selected(group) }}
FROM {{ table.external }};
DROP EXTERNAL TABLE {{ table.external }};
{% endif %}
{% endfor %}
{% endmacro %}

{% macro merge() %}
{{ merge_rows() }}
{%- endmacro %}

{% macro items(list) %}

CROSS JOIN UNNEST({{ list }}) AS list_item WITH OFFSET AS list_position
{%- endmacro %}

{% macro view() %}
{{ views_of(items, "list_item", "list_position") }}
{%- endmacro %}
