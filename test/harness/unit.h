/* What every unit test includes: cmocka with what it needs before it. */
#ifndef TEST_HARNESS_UNIT_H
#define TEST_HARNESS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
