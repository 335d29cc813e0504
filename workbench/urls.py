from django.contrib import admin
from django.urls import include, path, register_converter

from workbench import api, health, metrics
from workbench.addresses import ThreadIdConverter
from workbench.views import (
    account,
    documents,
    files,
    inspector,
    library,
    memories,
    memoryfoot,
    search,
    sessions,
    upkeep,
)

register_converter(ThreadIdConverter, "thread")

urlpatterns = [
    path("", sessions.new, name="new"),
    path("c/", sessions.sessions_list, name="sessions"),
    path("c/<thread:thread_id>/", sessions.session, name="session"),
    path("c/<thread:thread_id>/messages/", sessions.messages, name="messages"),
    path("c/<thread:thread_id>/queue/", sessions.queue, name="queue"),
    path("c/<thread:thread_id>/queue/<thread:message_id>/", sessions.take_back, name="take_back"),
    path("c/<thread:thread_id>/seen/", sessions.seen, name="seen"),
    path("c/<thread:thread_id>/line/", sessions.line, name="line"),
    path("c/<thread:thread_id>/rename/", sessions.rename, name="rename"),
    path("c/<thread:thread_id>/delete/", sessions.delete, name="delete"),
    path("c/<thread:thread_id>/restore/", sessions.restore, name="restore"),
    path("c/<thread:thread_id>/archive/", upkeep.archive, name="archive"),
    path("c/<thread:thread_id>/unarchive/", upkeep.unarchive, name="unarchive"),
    path("c/<thread:thread_id>/summarise/", upkeep.summarise, name="summarise"),
    path("c/<thread:thread_id>/memory/", memoryfoot.act, name="memory_act"),
    path("sessions/<thread:thread_id>/inspector/", inspector.show, name="inspector"),
    path("search/", search.search, name="search"),
    path("library/", library.library, name="library"),
    path("library/rows/", library.rows, name="library_rows"),
    path("library/picker/", library.picker, name="library_picker"),
    path("library/delete/", library.delete, name="documents_delete"),
    path("library/restore/", library.restore, name="documents_restore"),
    path("library/move/", library.move, name="documents_move"),
    path("library/collections/", library.make_collection, name="collections"),
    path("library/collections/<uuid:collection_id>/rename/", library.rename_collection, name="collection_rename"),
    path("library/collections/<uuid:collection_id>/delete/", library.delete_collection, name="collection_delete"),
    path("library/<uuid:artifact_id>/", documents.document, name="document"),
    path("library/<uuid:artifact_id>/passages/", documents.passages, name="passages"),
    path("library/<uuid:artifact_id>/frame/<int:version>/", documents.frame, name="document_frame"),
    path("library/<uuid:artifact_id>/edit/", documents.edit, name="document_edit"),
    path("library/<uuid:artifact_id>/restore/<int:version>/", documents.bring_back, name="bring_back"),
    path("library/<uuid:artifact_id>/rename/", library.rename, name="document_rename"),
    path("library/<uuid:artifact_id>/read-again/", library.read_again, name="document_read_again"),
    path("memories/", memories.memories, name="memories"),
    path("memories/add/", memories.add, name="memory_add"),
    path("memories/delete/", memories.delete, name="memories_delete"),
    path("memories/restore/", memories.restore, name="memories_restore"),
    path("memories/forget/", memories.forget, name="memories_forget"),
    path("memories/switch/", memories.switch, name="memories_switch"),
    path("memories/export/", memories.export, name="memories_export"),
    path("memories/<slug:memory_id>/row/", memories.row, name="memory"),
    path("memories/<slug:memory_id>/edit/", memories.edit, name="memory_edit"),
    path("memories/<slug:memory_id>/mute/", memories.mute, name="memory_mute"),
    path("memories/<slug:memory_id>/bring-back/", memories.bring_back, name="memory_bring_back"),
    path("signin/", account.sign_in, name="sign_in"),
    path("signin/<str:secret>/", account.sign_in_link, name="sign_in_link"),
    path("signout/", account.sign_out, name="sign_out"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("files/", files.files, name="files"),
    path("library/upload/", files.upload, name="library_upload"),
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
