"""Personal data that has a pattern: addresses, telephone numbers, cards, accounts, national numbers.

A pattern proposes, a library decides. Records of agents are full of numbers that look like personal data: ids of orders
and items, times, prices, versions. So digits that nothing marks are no telephone number, a card needs its issuer's
prefix and check digit, and an address of a private network is no one's.

Patterns are ASCII: in Chinese a number stands between words without a space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address

from curatec.runtime.redaction.finding import Finding, Recogniser

FAMILY = "pii"


def recognisers() -> tuple[Recogniser, ...]:
    """In order: what an earlier one found, a later one does not find again. Raises ImportError."""
    return (_addresses(), _crypto(), _ibans(), _cards(), _national(), _phones(), _networks)


def _found(match: re.Match[str], kind: str, same: str) -> Finding:
    return Finding(match.start(), match.end(), FAMILY, kind, same)


# ---- e-mail ----

_ADDRESS = re.compile(
    r"(?<![\w.%+-])[\w.%+-]{1,64}@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,63}(?![\w@-])", re.ASCII | re.IGNORECASE
)


def _addresses() -> Recogniser:
    from email_validator import EmailNotValidError, validate_email

    def find(text: str, member: str | None) -> Iterator[Finding]:
        if "@" not in text:
            return
        for match in _ADDRESS.finditer(text):
            if match[0].startswith("git@"):  # the user of every git server
                continue
            try:
                same = validate_email(match[0], check_deliverability=False).normalized.lower()
            except EmailNotValidError:
                continue
            yield _found(match, "email", same)

    return find


# ---- money ----

_WALLET = re.compile(r"\b(?:[13][a-km-zA-HJ-NP-Z1-9]{25,34}|bc1[a-z0-9]{11,71}|0x[0-9a-fA-F]{40})\b", re.ASCII)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b", re.ASCII)
# Alone, or in the groups that cards have.
_CARD = re.compile(
    r"(?<![\w.,#-])(?:[2-6]\d{13,18}|[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|3\d{3}([ -])\d{6}\2\d{4,5})"
    r"(?![\w-])(?!\.\d)",
    re.ASCII,
)
# As numbers of the large issuers begin.
_ISSUERS = re.compile(
    r"4\d{15}|4\d{18}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01]|720)\d{12,13}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}"
)


def _crypto() -> Recogniser:
    from stdnum import bitcoin

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for match in _WALLET.finditer(text):
            if match[0].startswith("0x") or bitcoin.is_valid(match[0]):
                yield _found(match, "wallet", match[0])

    return find


def _ibans() -> Recogniser:
    from stdnum import iban

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for match in _IBAN.finditer(text):
            # The words after a spaced number may look like more of it.
            words = match[0].split(" ")
            for n in range(len(words), 0, -1):
                written = " ".join(words[:n])
                if iban.is_valid(written):
                    yield Finding(match.start(), match.start() + len(written), FAMILY, "iban", iban.compact(written))
                    break

    return find


def _cards() -> Recogniser:
    from stdnum import luhn

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for match in _CARD.finditer(text):
            digits = re.sub(r"\D", "", match[0])
            if _ISSUERS.fullmatch(digits) and luhn.is_valid(digits):
                yield _found(match, "card", digits)

    return find


# ---- national numbers ----

# Only numbers that are written in a way of their own, or that have enough check digits.
_NATIONAL = {
    "us_ssn": r"\d{3}-\d{2}-\d{4}",
    "us_itin": r"9\d{2}-\d{2}-\d{4}",
    "br_cpf": r"\d{3}\.\d{3}\.\d{3}-\d{2}",
    "in_aadhaar": r"\d{4} \d{4} \d{4}",
    "cn_ric": r"\d{17}[\dX]",
    "kr_rrn": r"\d{6}-\d{7}",
    "it_codicefiscale": r"[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]",
    "fr_nir": r"[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}",
}


def _national() -> Recogniser:
    from stdnum.br import cpf
    from stdnum.cn import ric
    from stdnum.fr import nir
    from stdnum.in_ import aadhaar
    from stdnum.it import codicefiscale
    from stdnum.kr import rrn
    from stdnum.us import itin, ssn

    valid: dict[str, Callable[[str], bool]] = {
        "us_ssn": ssn.is_valid,
        "us_itin": itin.is_valid,
        "br_cpf": cpf.is_valid,
        "in_aadhaar": aadhaar.is_valid,
        "cn_ric": ric.is_valid,
        "kr_rrn": rrn.is_valid,
        "it_codicefiscale": codicefiscale.is_valid,
        "fr_nir": nir.is_valid,
    }
    shapes = {kind: re.compile(rf"(?<![\w.#-]){shape}(?![\w-])", re.ASCII) for kind, shape in _NATIONAL.items()}

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for kind, shape in shapes.items():
            for match in shape.finditer(text):
                if valid[kind](match[0]):
                    yield _found(match, kind, re.sub(r"\W", "", match[0]))

    return find


# ---- telephones ----

_NORTH_AMERICA = re.compile(
    r"(?:\+?1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[ .-]\d{4}(?:,? ?(?:ext\.?|x) ?\d{1,6})?", re.ASCII
)
_SAYS_PHONE = (
    r"(?<![A-Za-z0-9])(?:(?:tele|cell)?phone|mobile|tel|cell|fax|sms|whatsapp)"
    r"(?:[ _-]?(?:number|no))?\W{0,4}(?:is)?\W{0,4}"
)
_PHONE_WORD = re.compile(rf"{_SAYS_PHONE}$", re.ASCII | re.IGNORECASE)
# The library looks at every group of digits and takes its time: it is asked about places that may hold a number.
_LIKELY = re.compile(
    rf"\+[ (]{{0,2}}\d|(?<!\d)(?:\(\d{{3}}\) ?|\d{{3}}[.-])\d{{3}}[ .-]\d{{4}}(?!\d)|{_SAYS_PHONE}\d{{3}}",
    re.ASCII | re.IGNORECASE,
)


def _phones() -> Recogniser:
    import phonenumbers as pn

    def find(text: str, member: str | None) -> Iterator[Finding]:
        for offset, near in _likely(text, member):
            for match in pn.PhoneNumberMatcher(near, "US", pn.Leniency.POSSIBLE, max_tries=len(near)):
                number, written = match.number, match.raw_string
                if written[0] in "([" and not re.search(r"[)\]]", written):  # the bracket closes after the number
                    written = written[1:]
                start = match.end - len(written)
                before = near[max(0, start - 30) : start]
                if written.isdigit():  # an id looks the same: something must say that it is a telephone
                    good = len(written) >= 10 and bool(_PHONE_WORD.search(before or member or ""))
                elif _NORTH_AMERICA.fullmatch(written):  # made-up ones are valid in no region, and look the same
                    good = True
                else:
                    good = written.startswith("+") and pn.is_valid_number(number)
                if good and not before.endswith(("#", "-", ".")):
                    same = pn.format_number(number, pn.PhoneNumberFormat.E164)
                    yield Finding(offset + start, offset + match.end, FAMILY, "phone", same)

    return find


_SPACE = re.compile(r"\s")
_AROUND = 40  # code points: more than a number and the words that tell it


def _likely(text: str, member: str | None) -> Iterator[tuple[int, str]]:
    """Pieces that may hold a telephone number, and where they begin. No word is cut."""
    if member is not None and text.isdigit():
        yield 0, text
        return
    start = end = 0
    for match in _LIKELY.finditer(text):
        if match.start() > end:
            if end:
                yield start, text[start:end]
            start = max(end, match.start() - _AROUND)
            while start > end and not text[start - 1].isspace():
                start -= 1
        space = _SPACE.search(text, match.end() + _AROUND)
        end = space.start() if space else len(text)
    if end:
        yield start, text[start:end]


# ---- networks ----

# Not in a path, and no whole network.
_V4 = re.compile(r"(?<![\w.])(?<![^/]/)\d{1,3}(?:\.\d{1,3}){3}(?![\w-])(?!\.\d|/\d)", re.ASCII)
_V6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{2,35}(?![\w:])(?!\.\w|/\d)", re.ASCII)
_VERSION = re.compile(r"(?:version\w*|release|section|==|>=|<=|~=|\bv)\W{0,5}$", re.IGNORECASE)


def _networks(text: str, member: str | None) -> Iterator[Finding]:
    """Addresses that the whole world can reach: those of private networks say nothing about anyone."""
    for pattern in (_V4, _V6):
        for match in pattern.finditer(text):
            try:
                address = ip_address(match[0])
            except ValueError:
                continue
            if address.is_global and not _VERSION.search(text[max(0, match.start() - 20) : match.start()]):
                yield _found(match, "ip", address.compressed)
