"""A sanitizer's report in the guest reaches the host and fails a test: each kind, in each program
(test/san/plant.c)."""
import pytest

from machine_harness import CANNOT_START, Sandbox, kernel_command_line


@pytest.mark.parametrize("program", ["codev-init", "codev-agent"])
@pytest.mark.parametrize("fault, said", [("overflow", "stack-buffer-overflow"),
                                         ("undefined", "signed integer overflow")])
def test_a_fault_on_purpose_is_reported(program, fault, said):
    line = kernel_command_line(f"codev.san={program}-{fault} init=/sbin/codev-init")
    with pytest.raises(AssertionError, match="a sanitizer's report") as failure:
        with Sandbox("true", ["--qemu-arg", "-append", "--qemu-arg", line]) as sandbox:
            assert sandbox.finish()[0] == CANNOT_START
    assert said in str(failure.value)


def test_no_fault_is_no_report():
    with Sandbox("echo all is well") as sandbox:
        assert sandbox.finish() == (0, "all is well\n")
