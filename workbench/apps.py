from django.apps import AppConfig

from workbench import adminnames
from workbench.celery import app as celery  # every process that plants a job must know the broker


class WorkbenchConfig(AppConfig):
    name = "workbench"
    celery = celery
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        adminnames.name_all()
