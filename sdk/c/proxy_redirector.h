// The program on the host that sends the device's connections through a proxy, for a plugin whose `plugin.toml` names a
// constant:
//
//     [provides]
//     proxy-redirector = "redirector"
//
// The constant has the functions that configure it, all of them, and is not `static`:
//
//     #include "proxy_redirector.h"
//
//     static proxy_state_result_t get(void) {
//         return proxy_direct();
//     }
//
//     static proxy_result_t set(const redirection_t *target) {
//         if (target != NULL && target->dns_address != NULL) return proxy_invalidf("`dns` is not supported");
//         return proxy_done();
//     }
//
//     const proxy_redirector_t redirector = {
//         .get = get, .set = set, .no_proxy = no_proxy, .set_no_proxy = set_no_proxy, .apply = apply};
//
// The device calls them for `PATCH /v1/device/host-config`, and other plugins may call them. Each call runs in a fresh
// instance, and runs to its end even if its caller has disconnected.
#ifndef SUPERVISOR_PROXY_REDIRECTOR_H
#define SUPERVISOR_PROXY_REDIRECTOR_H

#include "supervisor.h"

// The protocol of a proxy.
typedef enum { PROXY_SOCKS4, PROXY_SOCKS5, PROXY_HTTP_CONNECT, PROXY_HTTP_RELAY } proxy_kind_t;

// Where connections are sent, and optionally the queries for names. An address is an IPv4 address or a host name, and a
// port is from 1 to 65535.
typedef struct {
    proxy_kind_t kind;
    const char *address;
    uint16_t port;
    // Neither this nor the password contains a control character; NULL if there is none.
    const char *login;
    const char *password;
    // The name server that is queried over TCP, and so through the proxy; NULL if names are not resolved that way.
    const char *dns_address;
    uint16_t dns_port;
} redirection_t;

typedef exports_platform_supervisor_proxy_redirector_result_proxy_state_proxy_error_t proxy_state_result_t;
typedef exports_platform_supervisor_proxy_redirector_result_void_proxy_error_t proxy_result_t;
typedef exports_platform_supervisor_proxy_redirector_result_list_string_proxy_error_t proxy_addresses_result_t;

// The functions of a provider.
typedef struct {
    // Returns the present configuration.
    proxy_state_result_t (*get)(void);
    // Writes the configuration, or removes it if `target` is NULL, completely or not at all. Keeps other settings as
    // long as there is a configuration. Takes effect with `apply`.
    proxy_result_t (*set)(const redirection_t *target);
    // Returns the addresses and subnets that are reached without the proxy.
    proxy_addresses_result_t (*no_proxy)(void);
    // Replaces these addresses and subnets, of which there are `count`. Takes effect with `apply`.
    proxy_result_t (*set_no_proxy)(const char *const *addresses, size_t count);
    // Makes the redirector use what was written. Open connections may stay as they are.
    proxy_result_t (*apply)(void);
} proxy_redirector_t;

// Connections are not redirected.
proxy_state_result_t proxy_direct(void);
// There is a configuration that names no usable proxy; the message says what is wrong with it.
proxy_state_result_t proxy_unusablef(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Connections are redirected.
proxy_state_result_t proxy_redirected(redirection_t redirection);
// The configuration cannot be read; the message says what could not be read.
proxy_state_result_t proxy_state_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// These addresses as the result of `no_proxy`.
proxy_addresses_result_t proxy_addresses(const char *const *addresses, size_t count);
// The addresses cannot be read; the message says what could not be read.
proxy_addresses_result_t proxy_addresses_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The step has been done.
proxy_result_t proxy_done(void);
// A value cannot be configured, and nothing was written; the message names the value.
proxy_result_t proxy_invalidf(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The step cannot be done; the message says why.
proxy_result_t proxy_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The constant that `plugin.toml` names; the build defines this.
extern const proxy_redirector_t *const proxy_provider;

#endif
