// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab allocate` is asked, in parts that its forms have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"
#include "validation/allocation/regime_map.h"
#include "validation/allocation/theory_study.h"

namespace headlab {
struct Condition;
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// The arguments of `headlab allocate`; `scenario` is that of --data.
struct AllocateArguments : CommonArguments {
  std::optional<std::string> budget;  ///< one number or several, "8,16,32"
  std::vector<std::uint64_t> dims;    ///< d_k to choose from; all without one
  std::vector<std::uint64_t> sizes;   ///< n; the scenario's without one
  std::vector<BandwidthRule> rules = {BandwidthRule::fixed};  ///< several of a map alone
  bool growth = false;
  bool map = false;
  std::string source = "simulation";

  void list(Options& options);
};

/// "fixed,rate".
std::string rules_text(const std::vector<BandwidthRule>& rules);

struct AllocateRequest {
  std::optional<TheoryMean> theory;  ///< none: a simulation
  std::vector<std::uint64_t> budgets;
  std::vector<std::uint64_t> sizes;  ///< n, ascending
  AllocateOptions options;           ///< with the first of the rules
};

/// Throws InvalidInput for arguments that do not go together.
AllocateRequest allocate_request(const AllocateArguments& arguments);

/// Takes the n of the scenario where none was asked; throws InvalidInput where the scenario cannot
/// give what is asked.
void complete_request(AllocateRequest& request, const AllocateArguments& arguments,
                      const Scenario& scenario);

/// The errors of every dimension with the best and its growth, for a person.
std::string allocation_theory_table(const Condition& base,
                                    const std::vector<TheoryGrowth>& growths);

/// `headlab allocate --source theory` and `--source exact`: computes the error of every dimension
/// at each budget and n and prints it with the best, its growth and the predicted constants.
ExitCode allocate_by_theory(const AllocateArguments& arguments, const AllocateRequest& request,
                            const Condition& base, const Session& session);

/// `headlab allocate --map`: how the best dimension grows with n in every setting of the
/// scenario's sweep, under every rule and budget.
ExitCode allocate_map(const AllocateArguments& arguments, const AllocateRequest& request,
                      const Scenario& scenario, Session session);

/// The command that gives the same bits again: `form` is " --map" or nothing, and `rest` stands
/// before the settings.
std::string again_text(const AllocateArguments& arguments, const std::string& form,
                       const std::string& budget, const std::string& n, const std::string& rule,
                       const std::string& rest);

}  // namespace headlab::tools
