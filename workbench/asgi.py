import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
http = get_asgi_application()

from workbench import consumers  # noqa: E402 - models can be imported only after the line above

sockets = URLRouter(
    [
        path("ws/agui/", consumers.agui),
        path("ws/agui/<slug:agent>/", consumers.agui),
        re_path("", consumers.nothing_here),
    ]
)
application = ProtocolTypeRouter({"http": http, "websocket": sockets})
