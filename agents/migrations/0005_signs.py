from django.db import migrations

# A sixteenth of each vector, in an index that alone says which are near: reading 20,000 whole vectors takes three times
# as long. A generated column of any length has no Django field; nothing but this index reads it.
SIGNS = """
alter table agents_embedding
 add column signs bit varying generated always as (binary_quantize(vector)::bit varying) stored;
create index embedding_signs on agents_embedding (owner_id, kind, model, group_id) include (entry_id, signs);
"""
NO_SIGNS = "alter table agents_embedding drop column signs"


class Migration(migrations.Migration):
    dependencies = [("agents", "0004_summary")]

    operations = [
        migrations.RunSQL(SIGNS, NO_SIGNS),
        migrations.RemoveIndex(model_name="embedding", name="embedding_scope"),
    ]
