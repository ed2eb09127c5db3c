{% from "common.sql" import definition, definitions, selected, insert_staging, add_columns, comments, merge_rows, views_of with context %}

{% macro create() %}
CREATE TABLE IF NOT EXISTS {{ table.name }} {{ definitions(definition) }};
{{ add_columns() -}}
{{ comments() }}
{%- endmacro %}

{% macro stage() %}
CREATE OR REPLACE TEMPORARY TABLE {{ table.staging }} {{ definitions(definition) }};
{% endmacro %}

{% macro load() %}
{{ stage() -}}
{% for group in table.groups %}
{{ insert_staging() }}
SELECT {{ selected(group) }}
FROM read_parquet([
{% for name in group.names %}
  {{ (group.place ~ name) | escape_pattern | literal }}{{ "," if not loop.last }}
{% endfor %}
], hive_partitioning = false);
{% endfor %}
{% endmacro %}

{% macro merge() %}
{{ merge_rows() }}
{%- endmacro %}

{% macro items(list) %}

CROSS JOIN LATERAL UNNEST({{ list }}) WITH ORDINALITY AS list(item, number)
{%- endmacro %}

{% macro view() %}
{{ views_of(items, "list.item", "list.number - 1", without="EXCLUDE") }}
{%- endmacro %}
