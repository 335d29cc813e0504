"""Load what a part of the installation needs, then wait for the launcher's word, then become that part.

    python -m workbench.preload GATE module-or-"prepare" [arguments]

GATE is the reading end of a pipe. A line on it opens; its end without one means that the launcher is gone. So the
imports of the web server happen while the database starts and is migrated, and no part sees a half-made schema.
"""

import importlib
import os
import runpy
import sys

# Not workbench.asgi: loading the middleware lists the static files, which may still be collected.
AHEAD = {
    "workbench.serve": (
        "workbench.eventloop",  # before anything that may import the reactor
        "channels.layers",
        "channels_redis.pubsub",
        "django.core.handlers.asgi",
        "agents.live.registry",
        "agents.wiring",
        "workbench.urls",
    ),
}


def main() -> None:
    gate, module, *arguments = sys.argv[1:]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    names = AHEAD.get(module, ())
    for name in names[:1]:
        importlib.import_module(name)
    import django  # noqa: PLC0415  # the settings module must be named first

    django.setup()
    for name in names[1:]:
        importlib.import_module(name)
    if module == "prepare":
        from workbench import prepare  # noqa: PLC0415  # after Django is set up

        prepare.files()
    with os.fdopen(int(gate), "rb") as pipe:
        if not pipe.readline():
            sys.exit(0)
    if module == "prepare":
        from django.core.management import call_command  # noqa: PLC0415  # after Django is set up

        call_command("prepare", *arguments)
        return
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def told() -> None:
    """Run main(). What is wrong with a setting or a server is told in one line: no traceback is needed to mend it."""
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # the launcher's clock runs: no sooner
    from django.core.management.base import CommandError  # noqa: PLC0415  # as above

    try:
        main()
    except (ImproperlyConfigured, CommandError) as e:
        sys.exit(f"{e}")


if __name__ == "__main__":
    told()
