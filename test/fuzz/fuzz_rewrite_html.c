/* Links in HTML pages: what fuzz_rewrite.h checks of any document. */
#include "test/fuzz/fuzz_rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > FUZZ_DOCUMENT_MAX)
        return 0;
    fuzz_document(REWRITE_PYPI_HTML, data[1], (struct slice){(const char *)data + 2, size - 2});
    return 0;
}
