"""Tables in a pipe are plain, aligned text."""

from safetensors_spark._tables import Table, plain


def test_columns_are_aligned() -> None:
    table = Table("Shards", ("file", "bytes"), [("a", "1,000"), ("longer", "2")])
    assert plain(table) == "Shards\n  file    bytes\n  a       1,000\n  longer  2\n"


def test_a_cell_may_hold_several_lines() -> None:
    table = Table("Mends", ("for", "do"), [("Java", "one\ntwo"), ("Jar", "three")])
    assert plain(table) == "Mends\n  for   do\n  Java  one\n        two\n  Jar   three\n"


def test_a_table_may_be_empty() -> None:
    assert plain(Table("Nothing", ("a",), [])) == "Nothing\n  a\n"
