"""Made-up values of each kind. They are put together from pieces, so that no scanner takes this file for a leak."""

from __future__ import annotations

import base64
import json


def _web_token() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "nobody"})
    head = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*head, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))


def private_key(kind: str = "RSA ") -> str:
    lines = "\n".join("MIIEowIBAAKCAQEA" + letter * 48 for letter in "abc")
    return f"-----BEGIN {kind}PRIVATE" + f" KEY-----\n{lines}\n-----END {kind}PRIVATE" + " KEY-----"


# name in the ledger → values that stand for themselves
PII = {
    "pii.email": ("jane.doe+x@example.com", "o_b@mail.example.co.uk"),
    "pii.phone": ("+1 650-555-0123", "(650) 555-0123", "555-123-4567", "+44 20 7946 0958", "+4930901820"),
    "pii.card": ("4111 1111 1111 1111", "5555555555554444", "3782-822463-10005", "6011111111111117"),
    "pii.iban": ("GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"),
    "pii.ip": ("8.8.8.8", "2606:4700:4700::1111"),
    "pii.wallet": ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "0x52908400098527886E0F7030069857D2E4169EE7"),
    "pii.us_ssn": ("536-22-8726",),
    "pii.us_itin": ("912-90-3456",),
    "pii.br_cpf": ("390.533.447-05",),
    "pii.in_aadhaar": ("2341 2341 2346",),
    "pii.cn_ric": ("360426199101010071",),
    "pii.kr_rrn": ("971013-9019902",),
    "pii.it_codicefiscale": ("RCCMNL83S18D969H",),
    "pii.fr_nir": ("2 95 10 99 126 111 93",),
}
_TAIL = "a1B2c3D4e5F6g7H8i9J0"
SECRETS = {
    "secrets.aws_key": ("AKIA" + "IOSFODNN7EXAMPLE",),
    "secrets.github_token": ("ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8", "github_" + "pat_" + "11AAAAAAA0" * 5),
    "secrets.gitlab_token": ("glpat" + "-" + _TAIL,),
    "secrets.slack_token": ("xoxb" + "-123456789012-1234567890123-" + "AbCdEfGhIjKlMnOpQrStUvWx",),
    "secrets.stripe_key": ("sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc", "sk_" + "test_" + "4eC39HqLyjWDarjtT1zdp7dc"),
    "secrets.openai_key": ("sk-" + _TAIL + "T3Blbk" + "FJ" + _TAIL, "sk-" + "proj-" + _TAIL * 2),
    "secrets.anthropic_key": ("sk-" + "ant-" + "api03-" + _TAIL * 2,),
    "secrets.google_key": ("AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",),
    "secrets.huggingface_token": ("hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",),
    "secrets.npm_token": ("npm_" + "a1B2c3D4e5" * 3 + "f6G7h8",),
    "secrets.sendgrid_key": ("SG." + "a1B2c3D4e5f6G7h8I9j0Kl" + "." + "a1B2c3D4e5" * 4 + "f6G",),
    "secrets.twilio_key": ("SK" + "0123456789abcdef" * 2,),
    "secrets.telegram_token": ("123456789" + ":" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",),
    "secrets.jwt": (_web_token(),),
    "secrets.private_key": (private_key(), private_key("OPENSSH "), private_key("")),
}
# A text, and the part of it that is secret only where it stands.
IN_PLACE = {
    "secrets.basic_auth": (("https://ann:" + "pw-17@" + "db.example.com/x", "pw-17"),),
    "secrets.bearer_token": (("Authorization: Bearer " + _TAIL, _TAIL),),
    "secrets.npm_token": (("//registry.example.com/:_auth" + "Token=" + _TAIL, _TAIL),),
    "secrets.password": (
        ("DB_PASSWORD=" + "s3cr3t-Pa55", "s3cr3t-Pa55"),
        ('{"api_key": ' + f'"{_TAIL}"' + "}", _TAIL),
        ("password: " + "hunter2x9", "hunter2x9"),
        ("client_secret := " + "'zX81-kk-29'", "zX81-kk-29"),
    ),
    "pii.ip": (("GET http://8.8.8.8/x", "8.8.8.8"), ("8.8.8.8:53", "8.8.8.8")),
    "pii.phone": (("my phone number is 6505550123", "6505550123"), ("Tel.: 6505550123.", "6505550123")),
}
# What records of agents are full of, and no one's data.
HARMLESS = (
    "order #W1234567 and #W9571698 of item 1008292230, 6505550123",
    "reservation 4WQ150, flight HAT001 from JFK to SEA on 2024-05-15 at 15:00:00-05:00",
    "credit_card_4421486, gift_card_8887175, certificate_3765853, paypal_2433177",
    '{"item_id": "2872451762", "price": 1234.56, "created": 1716239022, "ms": 1716239022000}',
    "Headphones 6992792935, Smartphone 1801728040, cancellation 9302073999",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, md5 0cc175b9c0f1b6a831c399e269772661",
    "id 123e4567-e89b-12d3-a456-426614174000, call_00_zvMFpVbVgpqsqwyGkVbUWzXd",
    "version 1.2.3.4, pip==21.0.0.1, localhost 127.0.0.1:8080, 10.0.0.7, 192.168.1.1, 8.8.8.0/24",
    "std::string, Foo::Bar, 12:30:45, 2001:db8::1, ::1, actions/checkout@v3, git@github.com:x/y.git, pkg@1.2.3",
    "@decorator, icon at 2x, a@b, f(x)[0], x@y.",
    "password: required, password = os.environ['PW'], token=None, PWD=/home/u1/x, secret: ${SECRET_1}, pwd: <pw123456>",
    "4111111111111112 has a wrong check digit, 4111 1111 1111 too few; 3025058 0000383; 3.14159265358979323846",
    "zip 94105-1234, 12345 67890, 1,234,567.89, 2024/05/15 15:00, rows 1-2-3, 000-00-0000, 666-12-3456",
    "BEGIN PRIVATE KEY",
    '__version__ = "3.5.0.1", section 8.4.1.3, release 8.8.8.8, x/8.8.8.8, 2620:4f:8000::/48',
    "secret_key=hashlib.sha256(x), password = h2o.params[0]",
)
