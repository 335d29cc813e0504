from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0002_search")]

    operations = [
        migrations.CreateModel(
            name="TokenRate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("provider", models.CharField(max_length=32)),
                ("model", models.CharField(max_length=128)),
                ("values", models.JSONField(blank=True, default=dict)),
                ("calls", models.BigIntegerField(default=0)),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("provider", "model"), name="token_rate_once"),
                ],
            },
        ),
    ]
