/* What the sanitizers of codev-init and codev-agent do where no environment says it: in the guest
 * there is none. No search for leaks, which would trace the process: the agent forbids that. */
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
