from django.contrib import admin
from django.urls import include, path, register_converter

from workbench import api, health
from workbench.addresses import ThreadIdConverter
from workbench.views import account, files, sessions

register_converter(ThreadIdConverter, "thread")

urlpatterns = [
    path("", sessions.new, name="new"),
    path("c/", sessions.sessions_list, name="sessions"),
    path("c/<thread:thread_id>/", sessions.session, name="session"),
    path("c/<thread:thread_id>/messages/", sessions.messages, name="messages"),
    path("c/<thread:thread_id>/queue/", sessions.queue, name="queue"),
    path("c/<thread:thread_id>/queue/<thread:message_id>/", sessions.take_back, name="take_back"),
    path("c/<thread:thread_id>/seen/", sessions.seen, name="seen"),
    path("c/<thread:thread_id>/rename/", sessions.rename, name="rename"),
    path("c/<thread:thread_id>/delete/", sessions.delete, name="delete"),
    path("c/<thread:thread_id>/restore/", sessions.restore, name="restore"),
    path("signin/", account.sign_in, name="sign_in"),
    path("signin/<str:secret>/", account.sign_in_link, name="sign_in_link"),
    path("signout/", account.sign_out, name="sign_out"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("files/", files.files, name="files"),
    path("files/<uuid:artifact_id>/<int:version>/", files.download, name="file"),
    path("agui/", api.run, name="agui"),
    path("agui/history/", api.conversation, name="agui-history"),
    path("agui/cancel/", api.cancel, name="agui-cancel"),
    path("agui/capabilities/", api.capabilities, name="agui-capabilities"),
    path("agui/<slug:agent>/", api.run, name="agui-agent"),
    path("admin/", admin.site.urls),
]

handler400 = "workbench.errors.bad_request"
handler403 = "workbench.errors.forbidden"
handler404 = "workbench.errors.not_found"
handler500 = "workbench.errors.server_error"
