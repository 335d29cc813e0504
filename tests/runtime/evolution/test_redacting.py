from time import process_time

import pytest

from agents.runtime.evolution.proposals import Action, Proposal, Spec, texts
from agents.runtime.evolution.redacting import Redactor

PLAIN = Redactor()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("curl -H 'Authorization: Bearer abcdef0123456789'", "abcdef0123456789"),
        ("the bearer abcdefghijklmnop123 works", "abcdefghijklmnop123"),
        ("PASSWORD=hunter2", "hunter2"),
        ("DB_PASSWORD: 'two words'", "two words"),
        ("my_api_key = 9f8e7d6c", "9f8e7d6c"),
        ('{"access_token": "abc.def"}', "abc.def"),
        ("deploy --api-key 12ab34cd --fast", "12ab34cd"),
        ("--token=zzz999", "zzz999"),
        ("sk-proj-abcdefgh12345678", "abcdefgh"),
        (f"token {JWT} is old", "eyJ"),
        (f"session-{JWT}", "eyJ"),
        ("my-old-db_password_2: q7q7q7", "q7q7q7"),
        ("--my-old-db-password-2 q7q7q7", "q7q7q7"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("postgres://app:s3cr3t@db/x", "s3cr3t"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
        ("密码是 abc123", "abc123"),
        ("write to ana@harbour.example.org", "ana@"),
        ("call +351 912 345 678 now", "912"),
        ("call (030) 123-4567", "4567"),
        ("电话 13812345678", "13812345678"),
    ],
)
def test_what_must_not_travel_is_taken_out(text: str, secret: str) -> None:
    clean = PLAIN.text(text)
    assert secret not in clean and "[" in clean
    assert PLAIN.text(clean) == clean


@pytest.mark.parametrize("piece", ["a", "a-", "a.", "token-", "token_", "--a-", "eyJaaaaaaa-", "1", "12 ", " ", "a@"])
def test_a_long_text_of_any_kind_takes_no_longer_than_its_length(piece: str) -> None:
    begun = process_time()
    PLAIN.text(piece * (100_000 // len(piece)))
    assert process_time() - begun < 10


@pytest.mark.parametrize(
    "text",
    [
        "The token limit is 4000 and the password policy is on page 3.",
        "In 2024 we sold 1,250,000 units, 12.5 % more; order 2024-05-07.",
        "Search for {topic} with limit: 20.",
        "Version 1.2.3 of the skill, lines 100-200.",
        "bearer of bad news",
        "第 3 页写明 2026 年价格 12345 元。",
    ],
)
def test_ordinary_words_and_numbers_stay(text: str) -> None:
    assert PLAIN.text(text) == text


def test_names_of_people_are_taken_out_as_words_of_their_own() -> None:
    redactor = Redactor(["Ana Ferreira", "Ana", "李明", ""])
    assert redactor.text("Ana Ferreira and ANA met Anabel.") == "[NAME] and [NAME] met Anabel."
    assert redactor.text("请李明审阅。") == "请[NAME]审阅。"


def test_values_under_the_name_of_a_secret_go_in_arguments_too() -> None:
    value = {"query": "mail ana@x.org", "headers": {"my-api_key": "q"}, "list": ["PASSWORD=q1"], "n": 3}
    clean = PLAIN.value(value)
    assert clean == {
        "query": "mail [E-MAIL]",
        "headers": {"my-api_key": "[REDACTED]"},
        "list": ["PASSWORD=[REDACTED]"],
        "n": 3,
    }


def test_every_text_of_a_proposal_is_redacted() -> None:
    secret = "write to ana@x.org"
    spec = Spec(
        name=secret, description=secret, when_to_use=secret, steps=(secret,), pitfalls=(secret,), rules=(secret,)
    )
    clean = PLAIN.proposal(Proposal(action=Action.CREATE, spec=spec, reason=secret, note=secret))
    assert clean.spec is not None
    assert not any("ana@" in text for text in (*texts(clean.spec), clean.reason, clean.note))
