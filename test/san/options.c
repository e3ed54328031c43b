/* The sanitizers' default options in codev-init and codev-agent, as no environment variable sets
 * them in the guest. The search for leaks is off, because it traces the process, which the relay
 * forbids. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
    return "color=never:detect_leaks=0:exitcode=99:detect_stack_use_after_return=1:strict_string_"
           "checks=1";
}

const char *__ubsan_default_options(void)
{
    return "color=never:print_stacktrace=1:halt_on_error=1";
}
