"""Files with faults strewn in: what is right in most places reaches the deeper rules."""

import random
from collections.abc import Callable

from fuzz_headers import Draft, Entry, HeaderMaker
from fuzz_tokens import DIMS, NO_SPACES, ROUGH_TEXT, SPACES, STEPS, WRONG_DTYPES
from header_cases import file
from official import DTYPES

Fault = Callable[[HeaderMaker, Draft], None]


def on_field(name: bytes | None, change: Callable[[HeaderMaker, bytes], bytes]) -> Fault:
    """A fault in one field of one tensor: the one of a name, or any."""

    def fault(maker: HeaderMaker, draft: Draft) -> None:
        places = [
            (entry, at)
            for entry in draft.entries
            for at, (field_name, _) in enumerate(entry.fields)
            if name in (None, field_name)
        ]
        if places:
            entry, at = maker.chance.choice(places)
            entry.fields[at] = (entry.fields[at][0], change(maker, entry.fields[at][1]))

    return fault


def on_entry(change: Callable[[HeaderMaker, Draft, Entry], None]) -> Fault:
    def fault(maker: HeaderMaker, draft: Draft) -> None:
        if draft.entries:
            change(maker, draft, maker.chance.choice(draft.entries))

    return fault


def items_of(value: bytes) -> list[bytes]:
    return [item for item in value.strip(b"[] \n\t\r").split(b",") if item]


def dtype_as_object(maker: HeaderMaker, value: bytes) -> bytes:
    return b"{" + value + b":" + maker.chance.choice([b"null", b"null", b"{}", b"0"]) + b"}"


def other_item(maker: HeaderMaker, value: bytes) -> bytes:
    items = items_of(value)
    if items:
        items[maker.chance.randrange(len(items))] = maker.number()
    return maker.array(items)


def near_item(maker: HeaderMaker, value: bytes) -> bytes:
    items = items_of(value)
    places = [at for at, item in enumerate(items) if item.strip().isdigit()]
    if places:
        at = maker.chance.choice(places)
        items[at] = b"%d" % (int(items[at]) + maker.chance.choice([-8, -1, 1, 8]))
    return maker.array(items)


def more_items(maker: HeaderMaker, value: bytes) -> bytes:
    items = items_of(value)
    for _ in range(maker.chance.randint(1, 3)):
        items.insert(maker.chance.randint(0, len(items)), maker.chance.choice(DIMS).encode())
    return maker.array(items)


def swapped_items(maker: HeaderMaker, value: bytes) -> bytes:
    return maker.array(items_of(value)[::-1])


def fewer_items(maker: HeaderMaker, value: bytes) -> bytes:
    return maker.array(items_of(value)[1:])


def without_field(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    if entry.fields:
        entry.fields.pop(maker.chance.randrange(len(entry.fields)))


def field_again(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    if entry.fields:
        entry.fields.append(maker.chance.choice(entry.fields))


def more_fields(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    value = maker.nested() if maker.chance.random() < 0.1 else maker.value()
    name = maker.string(maker.text())[1:-1] if maker.chance.random() < 0.9 else maker.chance.choice(ROUGH_TEXT)
    entry.fields.insert(maker.chance.randint(0, len(entry.fields)), (name, value))


def as_list(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    entry.as_list = True


def rough_name(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    entry.name = maker.rough_string()


def same_name(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    other = maker.chance.choice(draft.entries)
    entry.name = other.name if maker.chance.random() < 0.9 else b'"__metadata__"'


def entry_again(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    copy = Entry(entry.name, list(entry.fields), entry.as_list)
    draft.entries.insert(maker.chance.randint(0, len(draft.entries)), copy)


def without_entry(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    draft.entries.remove(entry)


def same_place(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    """Two tensors of the same bytes, or of none: which of them comes first, nothing tells."""
    other = maker.chance.choice(draft.entries)
    offsets = dict(other.fields).get(b"data_offsets", b"[0,0]")
    entry.fields = [(name, offsets if name == b"data_offsets" else value) for name, value in entry.fields]


def wide_shape(maker: HeaderMaker, draft: Draft, entry: Entry) -> None:
    dims = maker.chance.choices(DIMS, k=maker.chance.randint(1, 4))
    entry.fields = [
        (name, maker.array([dim.encode() for dim in dims]) if name == b"shape" else value)
        for name, value in entry.fields
    ]


def some_metadata(maker: HeaderMaker, draft: Draft) -> None:
    values = [maker.value(), maker.metadata(), maker.members([(maker.string("k"), maker.value())])]
    draft.metadata.append(maker.chance.choice(values))


def wrong_gaps(maker: HeaderMaker, draft: Draft) -> None:
    maker.styled, maker.gaps = True, [*SPACES, *NO_SPACES]


def text_before(maker: HeaderMaker, draft: Draft) -> None:
    draft.before = maker.chance.choice(NO_SPACES + SPACES)


def text_after(maker: HeaderMaker, draft: Draft) -> None:
    draft.after = maker.chance.choice([*NO_SPACES, *SPACES, b"{}", b",", b"}"])


def more_bytes(maker: HeaderMaker, draft: Draft) -> None:
    draft.buffer += maker.chance.randbytes(maker.chance.choice([1, 2, 8, 100]))


def fewer_bytes(maker: HeaderMaker, draft: Draft) -> None:
    draft.buffer = draft.buffer[: -maker.chance.choice([1, 2, 8])]


def wrong_length(maker: HeaderMaker, draft: Draft) -> None:
    powers = [2 ** maker.chance.randrange(64) + maker.chance.choice([-1, 0, 1])]
    limits = [0, 1, 99_000_000, 99_999_999, 100_000_000, 100_000_001, 2**64 - 1, 2**64 - 8, 2**64 - 9]
    draft.length = maker.chance.choice(powers + limits)


FAULTS: list[Fault] = [
    on_field(b"dtype", lambda maker, _: maker.chance.choice(WRONG_DTYPES)),
    on_field(b"dtype", lambda maker, _: maker.string(maker.chance.choice(DTYPES))),
    on_field(b"dtype", dtype_as_object),
    on_field(b"shape", other_item),
    on_field(b"shape", near_item),
    on_field(b"shape", more_items),
    on_field(b"shape", fewer_items),
    on_field(b"data_offsets", other_item),
    on_field(b"data_offsets", near_item),
    on_field(b"data_offsets", near_item),
    on_field(b"data_offsets", more_items),
    on_field(b"data_offsets", swapped_items),
    on_field(b"data_offsets", fewer_items),
    on_field(None, lambda maker, _: maker.value()),
    *(on_entry(change) for change in (
        without_field, field_again, more_fields, more_fields, more_fields, as_list, rough_name, same_name, entry_again,
        without_entry, same_place, wide_shape)),
    some_metadata, wrong_gaps, text_before, text_after, more_bytes, fewer_bytes, wrong_length,
]  # fmt: skip


def made(chance: random.Random) -> bytes:
    """A file: sound in two of five cases, with one fault or several otherwise."""
    maker = HeaderMaker(chance)
    draft = maker.draft()
    if chance.random() < 0.6:
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            chance.choice(FAULTS)(maker, draft)
    header = maker.header(draft)
    if chance.random() < 0.01:
        header = header.ljust(max(chance.choice(STEPS) + chance.randint(-16, 16), 0))
    return file(header, draft.buffer, draft.length)
