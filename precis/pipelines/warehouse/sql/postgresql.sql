{% from "common.sql" import definition, definitions, add_columns, comments, insert_rows, fields_of, list_views with context %}

{# psql reads a file in the encoding of the session. #}
{% macro encoding() %}
SET client_encoding TO 'UTF8';
{% endmacro %}

{# Nulls in the key are equal. #}
{% macro create() %}
{{ encoding() -}}
CREATE TABLE IF NOT EXISTS {{ table.name }} (
{% for column in table.columns %}
  {{ definition(column) }},
{% endfor %}
  UNIQUE NULLS NOT DISTINCT ({{ table.key_names | join(", ") }})
);
{{ add_columns() -}}
{{ comments() }}
{%- endmacro %}

{% macro stage() %}
{{ encoding() -}}
CREATE TEMPORARY TABLE {{ table.staging }} {{ definitions(definition) }};
{% endmacro %}

{# A command of psql ends with its line. #}
{% macro load() %}
{{ stage() -}}
\copy {{ table.staging }} ({{ table.names | join(", ") }}) FROM {{ table.copied_rows | literal }} WITH (ENCODING 'UTF8')
{% endmacro %}

{% macro rows_of(source) -%}
(
{% for column in table.values %}
  {{ source }}.{{ column.name }}{{ "," if not loop.last }}
{% endfor %}
)
{%- endmacro %}

{# A row that would be written as it stands is left alone. #}
{% macro merge() %}
{{ encoding() -}}
{{ insert_rows(" AS target") }}
ON CONFLICT ({{ table.key_names | join(", ") }}) DO {{ "UPDATE SET" if table.values else "NOTHING" }}
{%- for column in table.values %}

  {{ column.name }} = excluded.{{ column.name }}{{ "," if not loop.last }}
{%- endfor %}
{% if table.values %}

WHERE {{ rows_of("target") }} IS DISTINCT FROM {{ rows_of("excluded") }}
{%- endif %};
DROP TABLE {{ table.staging }};
{% endmacro %}

{% macro field(of, column) -%}
{% if column.is_nested -%}
NULLIF({{ of }} -> {{ column.text }}, 'null'::jsonb)
{%- elif column.is_binary -%}
decode({{ of }} ->> {{ column.text }}, 'base64')
{%- else -%}
CAST({{ of }} ->> {{ column.text }} AS {{ column.type }})
{%- endif %}
{%- endmacro %}

{% macro items(list) %}

CROSS JOIN LATERAL jsonb_array_elements({{ list }}) WITH ORDINALITY AS list(item, number)
{%- endmacro %}

{# PostgreSQL does not replace a view by one with other columns, or in another order. The
   columns of a table keep theirs, and new ones come last. Where the fields of a struct
   have changed, the view is made anew. #}
{% macro view() %}
{{ encoding() -}}
DO $precis$
DECLARE
  statement text;
BEGIN
  SELECT {{ ("VIEW " ~ table.flat_view ~ " AS SELECT ") | literal }} || string_agg(CASE
{% for column in table.structs %}
    WHEN attname = {{ column.text }} THEN {{ fields_of(column, field) | literal }}
{% endfor %}
    WHEN true THEN format('source.%I', attname) END, ', ' ORDER BY attnum)
    || {{ (" FROM " ~ table.name ~ " AS source") | literal }}
  INTO statement FROM pg_attribute
  WHERE attrelid = {{ table.name | literal }}::regclass AND attnum > 0 AND NOT attisdropped;
  EXECUTE 'CREATE OR REPLACE ' || statement;
EXCEPTION WHEN invalid_table_definition THEN
  DROP VIEW {{ table.flat_view }};
  EXECUTE 'CREATE ' || statement;
END $precis$;
{{ list_views(items, "list.item", "list.number - 1", "", field) }}
{%- endmacro %}
