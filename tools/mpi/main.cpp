// SPDX-License-Identifier: Apache-2.0
/// \file The program where it is built with MPI: `headlab run` is shared by the ranks of mpirun.
#include <cstdlib>
#include <iostream>
#include <signal.h>
#include <sstream>
#include <string>
#include <string_view>

#include "kernels/host.h"
#include "tools/cli/characters.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/foreign_reader.h"
#include "tools/cli/ranks_of_job.h"
#include "tools/cli/stop_signal.h"
#include "tools/mpi/mpi_channel.h"

namespace headlab::tools {
namespace {

int number_in(const char* variable, int otherwise) {
  const char* const text = environment_variable(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Whether this process is one of several that MPI started.
bool is_one_of_several() {
  if (number_in("OMPI_COMM_WORLD_SIZE", 1) > 1 || number_in("PMI_SIZE", 1) > 1) return true;
  return environment_variable("PMIX_RANK") != nullptr && number_in("SLURM_STEP_NUM_TASKS", 1) > 1;
}

/// The rank by the variables of what started it, which are there before MPI is.
int rank_by_environment() {
  return number_in("OMPI_COMM_WORLD_RANK", number_in("PMIX_RANK", number_in("PMI_RANK", 0)));
}

/// `headlab run` that is no shard.
bool shares_run(int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) != "run") return false;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]).starts_with("--shard")) return false;
  }
  return true;
}

/// Keeps what a command says on standard output and standard error.
class Muted {
 public:
  Muted() : out_(std::cout.rdbuf(said_.rdbuf())), error_(std::cerr.rdbuf(said_.rdbuf())) {}
  ~Muted() {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(error_);
  }
  Muted(const Muted&) = delete;
  Muted& operator=(const Muted&) = delete;

  /// Without the name of the program before it.
  std::string said() const {
    constexpr std::string_view name = "headlab: ";
    std::string text = said_.str();
    if (text.starts_with(name)) text.erase(0, name.size());
    return text;
  }

 private:
  std::ostringstream said_;
  std::streambuf* out_;
  std::streambuf* error_;
};

/// Rank 0 hears signals and says everything.
int run_as_rank(int argc, char** argv) {
  const bool hears = rank_by_environment() == 0;
  if (!hears) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  }
  watch_signals(hears && computes(argc, argv));
  MpiChannel channel;
  Ranks ranks(channel);
  set_ranks_of_job(&ranks);
  int code = 0;
  if (ranks.leads()) {
    code = command_line(argc, argv);
  } else {
    const Muted muted;
    command_line(argc, argv);
    ranks.decline(muted.said());
  }
  ranks.end();
  return code;
}

}  // namespace
}  // namespace headlab::tools

int main(int argc, char** argv) {
  using namespace headlab::tools;
  hold_standard_streams();
  try {
    if (served_foreign_files(argc, argv)) return 0;
    deal_gpus();
    if (is_one_of_several() && shares_run(argc, argv)) {
      return run_as_rank(argc, argv);
    }
    watch_signals(computes(argc, argv));
    expect_no_exit();
    return own_exit(command_line(argc, argv));
  } catch (...) {
    return own_exit(static_cast<int>(report_exception()));
  }
}
