// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/standard_streams.h"

#include <fcntl.h>
#include <iostream>
#include <unistd.h>

#include "engine/files/error.h"

namespace headlab::tools {

void hold_standard_streams() {
  // The lowest free number is taken: in this order each stream gets its own.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // For the other direction: to read from standard input, or to write to the others, fails.
    [[maybe_unused]] const int held =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void print(std::string_view text) {
  std::cout << text;
  finish_standard_output();
}

void finish_standard_output() {
  if (!std::cout.flush()) throw RunFailed("standard output: cannot be written");
}

}  // namespace headlab::tools
