// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/command_line.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/stop_signal.h"

int main(int argc, char** argv) {
  headlab::tools::hold_standard_streams();
  headlab::tools::watch_signals(argc > 1 && headlab::tools::stops_when_asked(argv[1]));
  return headlab::tools::command_line(argc, argv);
}
