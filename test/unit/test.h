/* What every unit test includes: cmocka with what it needs before it. */
#ifndef TEST_UNIT_TEST_H
#define TEST_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
