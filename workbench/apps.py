from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "workbench"
    default_auto_field = "django.db.models.BigAutoField"
