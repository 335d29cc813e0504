import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
http = get_asgi_application()

from workbench import consumers  # noqa: E402 - models can be imported only after the line above

agui: Any = consumers.agui  # Channels routes ASGI applications by Django's path(), which is typed for views
nothing_here: Any = consumers.nothing_here
sockets = URLRouter([path("ws/agui/", agui), path("ws/agui/<slug:agent>/", agui), re_path("", nothing_here)])
application = ProtocolTypeRouter({"http": http, "websocket": sockets})
