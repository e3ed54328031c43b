/* Included by every unit test: cmocka and the headers that it needs first. */
#ifndef TEST_HARNESS_UNIT_H
#define TEST_HARNESS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
