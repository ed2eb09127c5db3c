{% from "common.sql" import definition, definitions, merge_rows, views_of with context %}

{% macro described(column) -%}
{{ definition(column) }}{{ " COMMENT " ~ column.comment if column.comment }}
{%- endmacro %}

{% macro create() %}
CREATE TABLE IF NOT EXISTS {{ table.name }} {{ definitions(described) }};
{% endmacro %}

{# A file is read as one column, $1, of which the columns are parts. #}
{% macro selected(group) -%}
{% for column in table.columns %}
{% if column.field in group.values -%}
CAST({{ group.values[column.field] }} AS {{ column.type }})
{%- else -%}
$1:"{{ column.field | replace('"', '""') }}"::{{ column.type }}
{%- endif %}
{{- ", " if not loop.last }}
{%- endfor %}
{%- endmacro %}

{% macro load() %}
CREATE OR REPLACE TEMPORARY TABLE {{ table.staging }} {{ definitions(definition) }};
{% for group in table.groups %}
COPY INTO {{ table.staging }} ({{ table.names | join(", ") }})
FROM (SELECT {{ selected(group) }}
FROM {{ group.place | literal }})
FILES = ({{ group.names | map("literal") | join(", ") }})
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
FORCE = TRUE;
{% endfor %}
{% endmacro %}

{% macro merge() %}
{{ merge_rows() }}
{%- endmacro %}

{% macro field(of, column) -%}
CAST(GET({{ of }}, {{ column.text }}) AS {{ column.type }})
{%- endmacro %}

{% macro items(list) -%}
, LATERAL FLATTEN(INPUT => {{ list }}) AS list
{%- endmacro %}

{% macro view() %}
{{ views_of(items, "list.VALUE", "list.INDEX", field=field, without="EXCLUDE") }}
{%- endmacro %}
