"""The same tests with AddressSanitizer and UBSan in the guest's own programs: `make SAN=1 qemu`
(test/san).

CODEV_IMAGE names that image. Every harness then passes it to the machine, and at the end of each
machine searches the console, to which these programs write, for a report: any report fails the
test."""
import os
import pathlib
import re

IMAGE = os.environ.get("CODEV_IMAGE")
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error: |AddressSanitizer:DEADLYSIGNAL")
# The variable of the server that names the stage in which codev-init-fail-stage fails.
FAIL_STAGE = "CODEV_TEST_FAIL_STAGE"


def fail_stage_image(guest):
    """The image that starts codev-init-fail-stage, of the same kind as the others of this run."""
    return (pathlib.Path(IMAGE).parent if IMAGE else guest) / "fail-stage" / "rootfs.erofs"


def options(given):
    """The options with those that select this image."""
    return ["--image", IMAGE] if IMAGE and "--image" not in given else []


def assert_no_report(*texts):
    if IMAGE:
        for text in texts:
            found = REPORT.search(text)
            assert not found, "a sanitizer's report:\n" + text[max(0,
                                                                   found.start() -
                                                                   200):found.start() + 6000]
