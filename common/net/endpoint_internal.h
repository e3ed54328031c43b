/* The parts of endpoints that exist on Linux only (endpoint_linux.c). */
#ifndef COMMON_NET_ENDPOINT_INTERNAL_H
#define COMMON_NET_ENDPOINT_INTERNAL_H

#include "common/net/endpoint.h"

/* Fills a vsock address; returns its length. */
int endpoint_vsock_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out);

/* The port of a vsock address. */
uint32_t endpoint_vsock_port(const struct sockaddr_storage *address);

/* Opens the kernel's routing table. A descriptor or a negative errno. */
int endpoint_open_routes(void);

#endif
