"""What people type into the pages, checked."""

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _


class RenameForm(forms.Form):
    """A conversation's new title."""

    title = forms.CharField(max_length=200, label=_("Title"))

    def clean_title(self) -> str:
        return " ".join(str(self.cleaned_data["title"]).split())


class SignInForm(AuthenticationForm):
    """Name and password. The error says neither which of the two was wrong nor whether the name exists."""

    error_messages = {
        "invalid_login": _("Name and password do not match."),
        "inactive": _("This account is switched off."),
    }
