// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

constexpr const char* first_scenario = R"(# A scenario: what to simulate. A # begins a comment.
# Every law with its parameters: headlab list laws. Every key: docs/scenario.md.

[scenario]
name = "my scenario"            # the title of the results
aims = "say what this is for"   # optional, kept with the results

[data]
n = 200                         # training points in one training set
# The design: where the training points lie. dim is the dimension d of the data.
design = { law = "normal", dim = 4 }
# The regression: the function m that is to be estimated. Here one bump of height 1 at the origin.
regression = { law = "bumps", heights = [1.0], centres = [[0.0, 0.0, 0.0, 0.0]], widths = [1.5] }
# The noise: Y = m(X) + noise. sd is its standard deviation.
noise = { law = "normal", sd = 0.5 }

[heads]
count = 2                       # number of heads H
dim = 2                         # dimension d_k of the subspace that one head sees, at most d
# The subspaces of the heads. Others to try: { law = "aligned" }, { law = "haar", seed = 1 }.
subspaces = { law = "orthogonal" }
# The kernel: how the weight of a training point falls with its distance from the query.
kernel = { law = "gaussian", bandwidth = 0.6 }
# The head weights a_h: every head counts the same. This is the default.
weights = { law = "uniform" }

[queries]                       # the points at which the error is measured
law = "points"
points = [[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]]

[run]
seed = 7                        # other seeds draw other training sets
replicates = 4000               # training sets; 4 times as many halve the standard errors
estimator = "conditional"       # the noise is integrated exactly; "plain" draws it
moments = "pairwise"            # covariances of all pairs of heads are kept

[sweep]                         # one condition for each value; several keys are crossed
"heads.kernel.bandwidth" = [0.4, 0.6, 0.8]
)";

struct InitArguments {
  std::string file = "scenario.toml";

  void list(Options& options) {
    options.text("FILE|-", "",
                 "The new file, or - for standard output; the default is scenario.toml", file);
  }
};

ExitCode init(const InitArguments& arguments) {
  const std::string& file = arguments.file;
  if (file == "-") {
    print(first_scenario);
    return ExitCode::done;
  }
  require_writable("init", file);
  std::error_code none;
  if (std::filesystem::exists(file, none) && std::filesystem::is_regular_file(file, none)) {
    throw InvalidInput("init: " + one_line(file) +
                       ": is there already - name another file, or - for standard output");
  }
  write_files({{file, first_scenario}}, true);
  std::cerr << "headlab: wrote " << one_line(file) << "; next: headlab run " << shell_word(file)
            << "\n";
  return ExitCode::done;
}

}  // namespace

Command init_command() {
  return make_command("init", "Write a commented scenario to begin with", init);
}

}  // namespace headlab::tools
