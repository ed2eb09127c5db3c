{% from "common.sql" import definition, definitions, merge_rows, views_of with context %}

{% macro described(column) -%}
{{ definition(column) }}{{ " COMMENT " ~ column.comment if column.comment }}
{%- endmacro %}

{% macro create() %}
CREATE TABLE IF NOT EXISTS {{ table.name }} {{ definitions(described) }}
USING DELTA;
{% endmacro %}

{% macro selected(group) -%}
{% for column in table.columns %}
{% if column.field in group.values -%}
CAST({{ group.values[column.field] }} AS {{ column.type }}) AS {{ column.name }}
{%- else -%}
{{ column.name }}
{%- endif %}
{{- ", " if not loop.last }}
{%- endfor %}
{%- endmacro %}

{% macro load() %}
CREATE OR REPLACE TABLE {{ table.staging }} {{ definitions(definition) }};
{% for group in table.groups %}
COPY INTO {{ table.staging }}
FROM (SELECT {{ selected(group) }}
FROM {{ group.place.rstrip("/") | literal }})
FILEFORMAT = PARQUET
FILES = ({{ group.names | map("literal") | join(", ") }})
COPY_OPTIONS ('force' = 'true');
{% endfor %}
{% endmacro %}

{% macro merge() %}
{{ merge_rows("<=>") }}
{%- endmacro %}

{% macro items(list) %}

LATERAL VIEW POSEXPLODE({{ list }}) list AS list_position, list_item
{%- endmacro %}

{% macro view() %}
{{ views_of(items, "list.list_item", "list.list_position") }}
{%- endmacro %}
