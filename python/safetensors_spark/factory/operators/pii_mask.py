"""Masking of personal data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_address

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Refiner

# Each begins with what is cheap to search for.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,24}(?![\w@])")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{3,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_IBAN = re.compile(r"(?<![\w])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![\w])")
_CARD = re.compile(r"(?<![\w.,-])\d(?:[ -]?\d){12,18}(?![\w]|[.,-]\d)")
# With a country's code, or with a prefix in brackets, or in groups as in North America.
_PHONE = re.compile(
    r"(?<![\w+./-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(0?\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}"
    r"|\(0\d{1,4}\)[ .-]?\d{3,4}[ .-]?\d{3,5}|\([2-9]\d{2}\)[ .-]?\d{3}[ .-]?\d{4}"
    r"|[2-9]\d{2}([-.])[2-9]\d{2}\1\d{4})(?![\w]|[.,-]\d)"
)
_IBAN_LENGTHS, _CARD_LENGTHS = range(15, 35), range(13, 20)
# What four numbers behind these are.
_VERSION = re.compile(r"(?i)\b(?:v|ver|version|release|build|section|chapter|part)\.?\s*$")


class PiiMask(Refiner):
    """Replaces e-mail addresses, IP addresses, phone numbers, credit card numbers and IBANs with fixed texts.

    Card numbers have 13 to 19 digits, the first of them 2 to 6, and a Luhn check digit (ISO/IEC 7812-1); one in
    ten other numbers of this form has a valid one by chance. IBANs have the check digits of ISO 13616. Only public IP
    addresses are masked, as private, loopback and reserved addresses identify nobody, and not after a word such as
    `version`. Phone numbers have a country code (`+49 ...`), or a prefix in brackets that begins with 0, or the form of
    North America (`212-555-0123`). Names and postal addresses are not found. A null stays null.
    """

    type = "pii_mask"

    field: str = Field(default="text", description="The text field.")
    email: str | None = Field(default="<EMAIL>", description="The replacement of e-mail addresses; none keeps them.")
    ip: str | None = Field(default="<IP>", description="The replacement of public IP addresses; none keeps them.")
    iban: str | None = Field(default="<IBAN>", description="The replacement of IBANs; none keeps them.")
    card: str | None = Field(default="<CARD>", description="The replacement of credit card numbers; none keeps them.")
    phone: str | None = Field(default="<PHONE>", description="The replacement of phone numbers; none keeps them.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.field: pa.string()}

    def refine(self, batch: pa.RecordBatch) -> Columns:
        texts = batch.column(self.field).to_pylist()
        return {self.field: [None if text is None else self._masked(text) for text in texts]}

    def _masked(self, text: str) -> str:
        if self.email is not None and "@" in text:
            text = _replaced(_EMAIL, text, self.email)
        if not any(map(text.__contains__, "0123456789")):
            return text
        if self.iban is not None:
            text = _replaced(_IBAN, text, self.iban, _is_iban)
        if self.card is not None:
            text = _replaced(_CARD, text, self.card, _is_card)
        if self.ip is not None:
            text = _IPV4.sub(partial(_public, mask=self.ip), text)
            if ":" in text:
                text = _replaced(_IPV6, text, self.ip, _is_public)
        if self.phone is not None:
            text = _replaced(_PHONE, text, self.phone, _is_phone)
        return text


def _replaced(pattern: re.Pattern[str], text: str, mask: str, is_one: Callable[[str], bool] = bool) -> str:
    def replacement(found: re.Match[str]) -> str:
        # Other digits or words may follow, which the pattern takes for further groups.
        whole = found[0]
        ends = [len(whole), *(one.start() for one in reversed([*re.finditer("[ -]", whole)]))]
        end = next((end for end in ends if is_one(whole[:end])), None)
        return whole if end is None else mask + whole[end:]

    return pattern.sub(replacement, text)


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _is_card(text: str) -> bool:
    digits = [int(digit) for digit in reversed(_digits(text))]
    if len(digits) not in _CARD_LENGTHS or digits[-1] not in range(2, 7):
        # Times in milliseconds begin with 1, and ISBN with 9.
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    compact = re.sub(r"[ -]", "", text)
    number = "".join(str(int(letter, 36)) for letter in compact[4:] + compact[:4])
    return len(compact) in _IBAN_LENGTHS and int(number) % 97 == 1


def _public(found: re.Match[str], mask: str) -> str:
    is_version = _VERSION.search(found.string, max(0, found.start() - 12), found.start())
    return mask if not is_version and _is_public(found[0]) else found[0]


def _is_public(text: str) -> bool:
    try:
        return ip_address(text).is_global
    except ValueError:
        return False


def _is_phone(text: str) -> bool:
    return 7 <= len(_digits(text)) <= 15
