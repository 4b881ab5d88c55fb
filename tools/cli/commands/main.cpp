// SPDX-License-Identifier: Apache-2.0
#include "engine/files/memory_lack.h"
#include "tools/cli/characters.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/foreign_reader.h"
#include "tools/cli/ranks_of_job.h"
#include "tools/cli/stop_signal.h"

int main(int argc, char** argv) {
  using namespace headlab::tools;
  hold_standard_streams();
  // Memory may be missing from the first call on.
  headlab::note_lack_of_memory();
  try {
    if (served_foreign_files(argc, argv)) return 0;
    deal_gpus();
    watch_signals(computes(argc, argv));
    expect_no_exit();
    return own_exit(command_line(argc, argv));
  } catch (...) {
    return own_exit(static_cast<int>(report_exception()));
  }
}
