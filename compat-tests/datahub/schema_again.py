"""DataHub's own set-up runs at every start of DataHub, also over the gateway's tables."""

from pathlib import Path

from harness import test

DDL = Path(__file__).resolve().with_name("datahub_schema.sql")


def run_datahub_setup(context):
    connection = context.connect()
    try:
        with connection, connection.cursor() as cursor:
            # Whole, as one simple query: psycopg2 leaves the percent signs alone without parameters.
            cursor.execute(DDL.read_text().replace("__SCHEMA__", context.schema).replace("__PREFIX__", context.prefix))
    finally:
        connection.close()


def things(context):
    """Every table, index and constraint of the schema, and which columns the tables have."""
    sql = """
        select 'relation', c.relname::text, c.relkind::text from pg_class c
        where c.relnamespace = %s::regnamespace
        union all
        select 'constraint', c.conname::text, pg_get_constraintdef(c.oid) from pg_constraint c
        where c.connamespace = %s::regnamespace
        union all
        select 'column', table_name::text, column_name::text from information_schema.columns
        where table_schema = %s
        order by 1, 2, 3
    """
    return context.rows(sql, context.schema, context.schema, context.schema)


@test(kafka=False)
def datahubs_set_up_adds_nothing(context):
    before = things(context)
    assert any(name == f"{context.prefix}_message" for _, name, _ in before), before
    run_datahub_setup(context)
    after = things(context)
    assert after == before, f"added {set(after) - set(before)}, removed {set(before) - set(after)}"
