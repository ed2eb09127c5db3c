{# What several warehouses write alike. Each file beside this one has the macros create,
   load, merge and view; `table` is made by sql_table.py. #}

{% macro columns(lines) -%}
(
  {{ lines | join(",\n  ") }}
)
{%- endmacro %}

{% macro definition(column) -%}
{{ column.name }} {{ column.type }}{{ "" if column.is_nullable else " NOT NULL" }}
{%- endmacro %}

{# The columns of a table, a line each; `define` is the macro that writes one. #}
{% macro definitions(define) -%}
(
{% for column in table.columns %}
  {{ define(column) }}{{ "," if not loop.last }}
{% endfor %}
)
{%- endmacro %}

{# The columns of a group of files: from the files, or the values of its folder. #}
{% macro selected(group) -%}
{% for column in table.columns %}
{% if column.field in group.values -%}
CAST({{ group.values[column.field] }} AS {{ column.type }})
{%- else -%}
{{ column.name }}
{%- endif %}
{{- ", " if not loop.last }}
{%- endfor %}
{%- endmacro %}

{% macro insert_staging() -%}
INSERT INTO {{ table.staging }} ({{ table.names | join(", ") }})
{%- endmacro %}

{# For a table that an earlier run has made. #}
{% macro add_columns() %}
{% for column in table.added %}
ALTER TABLE {{ table.name }} ADD COLUMN IF NOT EXISTS {{ column.name }} {{ column.type }};
{% endfor %}
{% endmacro %}

{% macro comments() %}
{% for column in table.columns if column.comment %}
COMMENT ON COLUMN {{ table.name }}.{{ column.name }} IS {{ column.comment }};
{% endfor %}
{% endmacro %}

{# One statement, so that readers see all rows of the run or none. #}
{% macro merge_rows(null_safe_equal="IS NOT DISTINCT FROM") %}
MERGE INTO {{ table.name }} AS target
USING {{ table.staging }} AS source
ON {% for column in table.key -%}
{{ " AND " if not loop.first }}target.{{ column.name }} {{ null_safe_equal if column.is_nullable else "=" }} source.{{ column.name }}
{%- endfor %}

{% if table.values %}
WHEN MATCHED THEN UPDATE SET
{% for column in table.values %}
  {{ column.name }} = source.{{ column.name }}{{ "," if not loop.last }}
{% endfor %}
{% endif %}
WHEN NOT MATCHED THEN INSERT {{ columns(table.names) }} VALUES (
  source.{{ table.names | join(",\n  source.") }}
);
DROP TABLE {{ table.staging }};
{% endmacro %}

{% macro insert_rows(alias="") -%}
INSERT INTO {{ table.name }}{{ alias }} {{ columns(table.names) }}
SELECT
  {{ table.names | join(",\n  ") }}
FROM {{ table.staging }}
{%- endmacro %}

{# A view of the columns of the table, in which structs are columns for their fields,
   and for each list of structs a view of its items.

   items(list)        the clause of FROM that has the items of a list
   item, position     an item of that clause, and its place from 0
   end                what stands behind the name of the table
   field(of, column)  a field of the struct `of` as an expression
   without            the word that leaves columns out of `source.*` #}
{% macro views_of(items, item, position, end="", field=plain_field, without="EXCEPT") %}
CREATE OR REPLACE VIEW {{ table.flat_view }} AS
SELECT
  source.*{{ " " ~ without ~ " (" ~ table.structs | map(attribute="name") | join(", ") ~ ")" if table.structs }}
{%- for column in table.structs %}
,
  {{ fields_of(column, field) }}
{%- endfor %}

FROM {{ table.name }} AS source{{ end }};
{{ list_views(items, item, position, end, field) }}
{%- endmacro %}

{% macro fields_of(column, field) -%}
{% for each in column.fields -%}
{{ field("source." ~ column.name, each) }} AS {{ each.alias }}{{ ", " if not loop.last }}
{%- endfor %}
{%- endmacro %}

{% macro list_views(items, item, position, end, field) %}
{% for list in table.columns if list.is_list and list.fields %}
CREATE OR REPLACE VIEW {{ list.view }} AS
SELECT
{% for column in table.key %}
  source.{{ column.name }} AS {{ column.alias }},
{% endfor %}
  {{ position }} AS {{ list.position }},
{% for column in list.fields %}
  {{ field(item, column) }} AS {{ column.alias }}{{ "," if not loop.last }}
{% endfor %}
FROM {{ table.name }} AS source{{ end }}{{ items("source." ~ list.name) }};
{% endfor %}
{% endmacro %}

{% macro plain_field(of, column) -%}
{{ of }}.{{ column.name }}
{%- endmacro %}
