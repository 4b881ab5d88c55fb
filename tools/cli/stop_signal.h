// SPDX-License-Identifier: Apache-2.0
/// \file How a long command is stopped, and how it ends.
#pragma once

#include <atomic>

namespace headlab::tools {

/// From now on SIGINT, SIGTERM and SIGHUP set the flag returned and leave it to the command to stop
/// at a good place. A second one that comes later ends the program at once. Signals that were
/// ignored when the program began stay ignored.
const std::atomic<bool>* stop_on_signals();

/// Once nothing looks at the flag any more: a signal ends the program again.
void end_on_signals();

/// Flushes standard output, which may be a full disk; throws RunFailed.
void finish_standard_output();

}  // namespace headlab::tools
