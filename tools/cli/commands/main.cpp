// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/characters.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/foreign_reader.h"
#include "tools/cli/ranks_of_job.h"
#include "tools/cli/stop_signal.h"

int main(int argc, char** argv) {
  headlab::tools::hold_standard_streams();
  if (headlab::tools::served_foreign_files(argc, argv)) return 0;
  headlab::tools::deal_gpus();
  headlab::tools::watch_signals(headlab::tools::computes(argc, argv));
  headlab::tools::expect_no_exit();
  return headlab::tools::own_exit(headlab::tools::command_line(argc, argv));
}
