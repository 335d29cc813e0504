"""Signing in and out."""

import hashlib

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model, login, logout
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from agents import hints
from workbench import tokens
from workbench.contexts import SignInPage
from workbench.forms import SignInForm
from workbench.version import version

TRIES = 5  # wrong passwords in a row before a pause
PAUSE_S = 300
BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Show the form; with name and password, sign in and go where the person wanted to."""
    target = wanted(request)
    if request.method == "GET":
        if request.user.is_authenticated:
            return redirect(target)
        page = SignInPage(form=SignInForm(request), next=target, version=version())
        return render(request, "workbench/signin.html", {"page": page})
    key = tries_key(request)
    if cache.get(key, 0) >= TRIES:
        page = SignInPage(form=SignInForm(request), next=target, version=version(), paused=True)
        return render(request, "workbench/signin.html", {"page": page}, status=429)
    form = SignInForm(request, data=request.POST)
    if form.is_valid():
        cache.delete(key)
        login(request, form.get_user())
        return redirect(target)
    cache.add(key, 0, PAUSE_S)
    cache.incr(key)
    page = SignInPage(form=form, next=target, version=version())
    return render(request, "workbench/signin.html", {"page": page}, status=422)


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_link(request: HttpRequest, secret: str) -> HttpResponse:
    """GET shows one button, so that a mail scanner uses nothing up; POST uses the link up and signs its owner in."""
    if request.method == "GET":
        works = tokens.link_works(secret)
        page = SignInPage(link=secret if works else "", link_bad=not works, form=SignInForm(request), version=version())
        return render(request, "workbench/signin.html", {"page": page}, status=200 if works else 410)
    owner_id = tokens.use_link(secret)
    if owner_id is None:
        page = SignInPage(link_bad=True, form=SignInForm(request), version=version())
        return render(request, "workbench/signin.html", {"page": page}, status=410)
    login(request, get_user_model().objects.get(pk=owner_id), backend=BACKEND)
    return redirect(reverse("new"))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session in this browser, and with it the sockets of its other tabs."""
    owner_id = request.user.pk
    logout(request)
    if owner_id is not None:
        async_to_sync(hints.signed_out)(owner_id)
    return redirect(reverse("sign_in"))


def wanted(request: HttpRequest) -> str:
    """Return the address to go to after signing in; an address of another site is not followed."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    allowed = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if allowed else reverse("new")


def tries_key(request: HttpRequest) -> str:
    """Return the cache key that counts wrong passwords, by name and address."""
    who = f"{request.POST.get('username', '').casefold()}\n{request.META.get('REMOTE_ADDR', '')}"
    return "signin:" + hashlib.sha256(who.encode()).hexdigest()
