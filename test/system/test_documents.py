"""Every test that the documents name exists."""
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ["doc/security.md", "test/qemu/README.md"]


def named(document):
    """(file, test or None) of every mention; `::NAME` alone refers to the file named before it."""
    file = None
    for name, test in re.findall(r"`((?:[\w/]*test_\w+\.(?:py|c))?)(?:::(\w+\*?))?`",
                                 (TOP / document).read_text()):
        file = name or file
        if name or test:
            yield file, test


def text_of(file):
    found = [
        path for path in (TOP / file, TOP / "test" / "qemu" / file, TOP / "test" / "system" / file)
        if path.exists()
    ]
    assert found, f"there is no {file}"
    return found[0].read_text()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_is_named_exists(document):
    mentions = list(named(document))
    assert len(mentions) > 20
    for file, test in mentions:
        text = text_of(file)
        if test:
            pattern = re.escape(test).replace(r"\*", r"\w+")
            assert re.search(rf"^(?:def |static void ){pattern}\(", text,
                             re.MULTILINE), f"{document}: no {test} in {file}"
