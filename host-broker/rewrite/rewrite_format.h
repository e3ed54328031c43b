/* The kinds of documents whose links are rewritten. */
#ifndef HOST_BROKER_REWRITE_REWRITE_FORMAT_H
#define HOST_BROKER_REWRITE_REWRITE_FORMAT_H

enum rewrite_format {
    REWRITE_NONE,
    REWRITE_NPM,       /* links: versions.*.dist.tarball, dist.tarball */
    REWRITE_PYPI_JSON, /* files[].url (PEP 691) */
    REWRITE_PYPI_HTML, /* <a href>, <base href> (PEP 503) */
    REWRITE_CARGO,     /* dl, api */
    REWRITE_GIT_LFS,   /* objects[].actions.*.href */
    REWRITE_FORMAT_COUNT
};

/* "npm" and the like, for the log. */
extern const char *const rewrite_format_names[REWRITE_FORMAT_COUNT];

#endif
