"""The blocks of code of a page, as its tests run them and its notebook has them."""

from __future__ import annotations

import re

# Language, code and, of a block of text right behind it, what the code prints; there `...` stands for anything.
BLOCK = re.compile(
    r"^```(python|bash|sql)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
# What is not run on its own: it would install something else, or run what other tests do.
NOT_RUN = re.compile(r"^(pip install|make|safetensors-spark demo) .*\n", re.MULTILINE)
