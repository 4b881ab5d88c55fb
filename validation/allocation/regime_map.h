// SPDX-License-Identifier: Apache-2.0
/// \file Where the scaling law holds: how the best dimension of a head grows with n in every
/// setting of a sweep, under every bandwidth rule and budget.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/scenario/sweep.h"
#include "validation/allocation/growth_study.h"

namespace headlab {

struct Scenario;

/// One setting under one rule and budget.
struct RegimeCell {
  std::size_t condition = 0;  ///< of the study
  GrowthStudy study;
};

/// One setting under one rule at one n, over the budgets.
struct RegimeHeads {
  std::size_t condition = 0;
  BandwidthRule rule = BandwidthRule::fixed;
  std::uint64_t n = 1;
  HeadGrowth growth;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("rule", rule_name(rule), "bandwidth rule");
    visit("n", n, "training points in one training set");
    growth.fields(visit);
  }
};

/// All settings of a study.
struct RegimeMap {
  std::vector<std::string> keys;                   ///< swept
  std::vector<std::vector<std::string>> settings;  ///< [conditions][keys], as TOML
  std::vector<std::uint64_t> sizes;
  std::uint64_t seed = 0;
  Parameters parameters = {};      ///< of the scenario, in its first setting
  std::vector<RegimeCell> cells;   ///< by condition, rule, budget; those reached
  std::vector<RegimeHeads> heads;  ///< where there are three budgets
  Outcome outcome;
  std::string failure;  ///< why a cell after the first could not be finished; empty where all were
};

/// study_growth() of every condition of `study`, a sweep over anything but n and the heads' number
/// and dimension, under every rule and every budget at the n of `sizes`; with three budgets or more
/// fit_head_growth() besides. `options.rule` is not used. Reports are headed "cell 3 of 12". Every
/// cell has the seed of its condition. Where the session has units, what was simulated is taken
/// from there and kept there; of a shard there are no cells. Throws InvalidInput where a cell would
/// be refused, before any is simulated.
RegimeMap map_regimes(const Scenario& scenario, std::span<const BandwidthRule> rules,
                      std::span<const int> budgets, std::span<const std::uint64_t> sizes,
                      const Session& session = {}, AllocateOptions options = {});

/// What a cell says of the law, in a few words: "full dimension" or "one dimension a head" at every
/// n, "rises", "falls", "no growth seen", with "log or power", "log", "power" where a law was told.
std::string cell_verdict(const Growth& growth);

/// Puts the map into a NetCDF file: the dimensions `cell` and `n`, one variable a figure, one a
/// swept key and the texts of rules, trends and verdicts (docs/allocation.md); `command` makes it
/// again. Throws NetcdfError.
void put_regime_map(const NetcdfGroup& root, const Scenario& scenario, const RegimeMap& map,
                    const Provenance& program, const std::string& command);

/// Writes such a file, whole or not at all; throws RunFailed.
void write_regime_map(const std::string& path, const Scenario& scenario, const RegimeMap& map,
                      const Provenance& program, const std::string& command);

}  // namespace headlab
