"""Emptying the test database after a test that commits.

Django truncates every table, which gives each table and index a new file, and then writes all permissions anew; most
of these tests leave ten rows. Here only tables with rows in them are emptied, and what the migrations wrote stays.
"""

from typing import Any

from django.db import connection, transaction

KEPT = ("django_content_type", "auth_permission")
LARGE_BYTES = 256 * 1024  # from here on a new file is cheaper than dead rows that later tests would read past


def empty_the_database(_: Any) -> None:
    """Delete what a test has committed. Waits for whoever still writes, so that nothing comes afterwards."""
    with transaction.atomic(), connection.cursor() as cursor:
        tables = [t for t in connection.introspection.django_table_names(include_views=False) if t not in KEPT]
        names = [connection.ops.quote_name(t) for t in tables]
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE")
        looks = (f"SELECT '{n}', pg_relation_size('{n}') WHERE EXISTS (SELECT FROM {n})" for n in names)
        cursor.execute(" UNION ALL ".join(looks))
        sizes = dict(cursor.fetchall())
        if large := [name for name, size in sizes.items() if size > LARGE_BYTES]:
            cursor.execute(f"TRUNCATE {', '.join(large)} CASCADE")
        if small := [name for name in sizes if name not in large]:
            cursor.execute("; ".join(f"DELETE FROM {name}" for name in small))
