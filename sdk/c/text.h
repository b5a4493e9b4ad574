// Memory and texts, for the other files of the SDK.
#ifndef SUPERVISOR_TEXT_H
#define SUPERVISOR_TEXT_H

#include <stddef.h>

#include "plugin.h"

// Allocates memory, which contains zeros. A failure ends the call with a trap, which the host answers with a 500.
void *allocate(size_t length);
// Ends the call with the reason if a length or count that the plugin gives to this function was negative, such as -1, which
// `read` and `snprintf` return if they fail: without a sign it is 4 GiB.
void check_length(const char *function, size_t length);
// Returns a copy of the bytes with a zero behind them.
char *copy_of(const void *bytes, size_t length);
// Returns text for the device, with U+FFFD for each byte that is not UTF-8: the device ends a call that passes such a
// byte, and it may be the caller's. U+FFFD also replaces each zero, at which the text would end as a string: what follows it
// would remain unseen. A zero follows the text.
plugin_string_t valid_text(const char *bytes, size_t length);

#endif
