"""The page of commands says what their parsers say."""

import commands_page


def test_the_page_of_commands_is_that_of_their_parsers() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "run project/commands_page.py"
