from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_signs")]

    operations = [
        migrations.AddField(model_name="run", name="slot", field=models.IntegerField(null=True, blank=True)),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "running")), fields=("owner", "slot"), name="run_slot"
            ),
        ),
        migrations.AddField(
            model_name="job", name="held_by", field=models.CharField(blank=True, db_default="", max_length=160)
        ),
    ]
