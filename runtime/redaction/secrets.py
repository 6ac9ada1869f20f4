"""Secrets: keys and tokens by their makers' patterns, private keys, passwords that something assigns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from curatec.runtime.redaction.finding import Finding, Recogniser

FAMILY = "secrets"


def recognisers() -> tuple[Recogniser, ...]:
    """In order: what an earlier one found, a later one does not find again. Raises ImportError."""
    return (_private_keys, _tokens(), _web_tokens(), _assigned())


def _found(match: re.Match[str], kind: str, group: int | str = 0) -> Finding:
    return Finding(*match.span(group), FAMILY, kind, match[group])


# ---- private keys ----

# The library knows the first line only; a block is redacted whole, or as far as it goes where it is cut.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:[^-]*(?:-[^-]+)*-----END (?P=what)-----|[A-Za-z0-9+/=\\\s]*)"
)


def _private_keys(text: str, member: str | None) -> Iterator[Finding]:
    if "PRIVATE KEY" in text:
        for match in _PRIVATE_KEY.finditer(text):
            yield _found(match, "private_key")


# ---- tokens ----

# Makers whose tokens the library does not know: kind, a text that each holds, the pattern.
_MORE_TOKENS = (
    ("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai_key", "sk-", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}"),
    ("google_key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("google_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{36,}"),
    ("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("npm_token", "_authToken=", r"_authToken= ?([A-Za-z0-9_-]{20,})"),
    ("stripe_key", "k_test_", r"[rs]k_test_[A-Za-z0-9]{16,}"),
    ("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}"),
    ("bearer_token", "earer ", r"[Bb]earer ([A-Za-z0-9._~+/-]{20,}=*)"),
)
# Where the first group is the secret; elsewhere a group only lists alternatives.
_GROUPED = {"aws_key", "basic_auth", "bearer_token", "npm_token"}


def _tokens() -> Recogniser:
    from detect_secrets.filters.heuristic import is_templated_secret
    from detect_secrets.plugins import (
        aws,
        azure_storage_key,
        basic_auth,
        discord,
        github_token,
        gitlab_token,
        mailchimp,
        openai,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    plugins: tuple[tuple[str, str, Any], ...] = (
        ("basic_auth", "://", basic_auth.BasicAuthDetector()),
        ("aws_key", "", aws.AWSKeyDetector()),
        ("azure_key", "AccountKey=", azure_storage_key.AzureStorageKeyDetector()),
        ("discord_token", ".", discord.DiscordBotTokenDetector()),
        ("github_token", "gh", github_token.GitHubTokenDetector()),
        ("gitlab_token", "", gitlab_token.GitLabTokenDetector()),
        ("mailchimp_key", "-us", mailchimp.MailchimpDetector()),
        ("openai_key", "sk-", openai.OpenAIDetector()),
        ("pypi_token", "pypi-", pypi_token.PypiTokenDetector()),
        ("sendgrid_key", "SG.", sendgrid.SendGridDetector()),
        ("slack_token", "", slack.SlackDetector()),
        ("square_secret", "sq0csp-", square_oauth.SquareOAuthDetector()),
        ("stripe_key", "k_live_", stripe.StripeDetector()),
        ("telegram_token", ":", telegram_token.TelegramBotTokenDetector()),
        ("twilio_key", "", twilio.TwilioKeyDetector()),
    )
    known = [(kind, need, pattern) for kind, need, plugin in plugins for pattern in plugin.denylist]
    # ASCII: in Chinese a token stands between words without a space.
    patterns = [(kind, need, re.compile(p.pattern, p.flags & ~re.UNICODE | re.ASCII)) for kind, need, p in known]
    patterns += [(kind, need, re.compile(pattern, re.ASCII)) for kind, need, pattern in _MORE_TOKENS]

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for kind, need, pattern in patterns:
            if need in text:
                for match in pattern.finditer(text):
                    found = _found(match, kind, 1 if kind in _GROUPED and pattern.groups and match[1] else 0)
                    if _whole(text, found) and not is_templated_secret(found.same):
                        yield found

    return find


_GOES_ON = re.compile(r"[A-Za-z0-9]{2}")


def _whole(text: str, found: Finding) -> bool:
    """Whether letters and digits end where the token does: a hash or an encoded file may hold anything."""
    return not any(_GOES_ON.fullmatch(text, max(0, at - 1), at + 1) for at in (found.start, found.end))


_WEB_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?", re.ASCII)


def _web_tokens() -> Recogniser:
    from detect_secrets.plugins.jwt import JwtTokenDetector

    def find(text: str, member: str | None) -> Iterator[Finding]:
        if "eyJ" in text:
            for match in _WEB_TOKEN.finditer(text):
                if JwtTokenDetector.is_formally_valid(match[0]):
                    yield _found(match, "jwt")

    return find


# ---- what something assigns ----

_MORE_WORDS = ("access_?token", "auth_?token", "refresh_?token", "api_?token", "passphrase")
_LEAST_ENTROPY = 2.5  # bits a character: below are words and repetitions


def _assigned() -> Recogniser:
    from detect_secrets.filters import heuristic
    from detect_secrets.plugins.keyword import DENYLIST

    words = "|".join(word.replace("_?", "[_-]?") for word in (*DENYLIST, *_MORE_WORDS))
    name = re.compile(words, re.IGNORECASE)
    assignment = re.compile(
        rf"""(?:{words})\w{{0,20}}["'`\]]{{0,2}}\s{{0,3}}(?::=|=>|[:=])\s{{0,3}}"""
        r"""(?:(["'`])(?P<quoted>[^"'`\s]+)\1|(?P<bare>[^\s"'`,;()\[\]{}<>]++)(?![(\[]))""",
        re.IGNORECASE,
    )
    parts = tuple(dict.fromkeys(re.split(r"\[_-\]\?|\|", words)))

    def secret(value: str) -> bool:
        return (
            len(value) >= 6
            and not value.startswith(("/", "~", ".", "$", "%", "http://", "https://"))
            and any(c.isalpha() for c in value)
            and not re.fullmatch(r"[A-Za-z_.\-:]+", value)  # a word, or a name in a program
            and _entropy(value) >= _LEAST_ENTROPY
            and not heuristic.is_sequential_string(value)
            and not heuristic.is_templated_secret(value)
        )

    def find(text: str, member: str | None) -> Iterator[Finding]:
        if member is not None and name.search(member) and secret(text) and not re.search(r"\s", text):
            yield Finding(0, len(text), FAMILY, "password", text)
        low = text.lower()
        if not any(part in low for part in parts):
            return
        for match in assignment.finditer(text):
            group = "quoted" if match["quoted"] else "bare"
            value = match[group].rstrip(".") if group == "bare" else match[group]
            if secret(value):
                start = match.start(group)
                yield Finding(start, start + len(value), FAMILY, "password", value)

    return find


def _entropy(text: str) -> float:
    """Shannon's, in bits a character."""
    return sum(-n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
