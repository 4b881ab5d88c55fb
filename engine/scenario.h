// SPDX-License-Identifier: Apache-2.0
/// \file A scenario: what to simulate, as read from a TOML file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/document.h"
#include "engine/setup_laws.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab {

/// One condition: a scenario with every parameter fixed.
struct Scenario {
  std::string name;
  std::string aims;

  std::uint64_t n = 1;  ///< training points in one training set
  DesignLaw design;
  RegressionLaw regression;
  NoiseLaw noise;
  bool fixed_design = false;
  std::uint64_t design_seed = 0;

  int heads = 1;  ///< H
  int k = 1;      ///< per-head dimension d_k
  SubspaceLaw subspaces;
  KernelLaw kernel;
  WeightLaw weights;

  QueryLaw queries;

  std::uint64_t seed = 0;
  std::uint64_t replicates = 0;
  Estimator estimator = Estimator::conditional;
  MomentMode moments = MomentMode::pairwise;

  Value parameters;                ///< the scenario after --set and sweep, without [sweep]
  std::vector<std::string> swept;  ///< values of the swept keys in this condition, as TOML
};

/// A scenario file with its sweep unrolled.
struct Study {
  std::string file;
  std::string text;                ///< of the file, for the record
  std::vector<std::string> sets;   ///< --set arguments applied
  std::vector<std::string> swept;  ///< swept keys, in the order of the file; empty without a sweep
  std::vector<Scenario> conditions;      ///< at least one; crossed sweeps vary the last key fastest
  std::vector<std::string> inputs = {};  ///< paths of all files that were read
};

/// Reads a scenario file, applies the `--set KEY=VALUE` arguments and unrolls the sweep. Throws
/// Refused with one line that says where, which key, what is wrong and what is allowed. All
/// conditions are checked before any is returned.
Study read_study(const std::string& file, const std::vector<std::string>& sets = {});

/// The same for a text already in memory; relative paths in it are relative to `directory`.
Study parse_study(const std::string& text, const std::string& source,
                  const std::vector<std::string>& sets = {}, const std::string& directory = ".");

/// True where queries are projected by matrices of their own.
bool projects_queries_apart(const Scenario& scenario);

/// What the laws of a scenario may need to know of the rest of it.
Sizes sizes_of(const Scenario& scenario);

/// The plan of one condition, ready for a backend. Weights of law `optimal` must have been resolved
/// (see engine/pilot.h), and heads of law `learned` that are learned once (see
/// engine/learned_heads.h). Throws ParameterError.
Plan make_plan(const Scenario& scenario);

/// W_h, h = 1..H, of a scenario; make_subspaces() in engine/subspaces.h has their column spaces as
/// matrices. Throws ParameterError.
HeadFrames make_head_frames(const Scenario& scenario);

}  // namespace headlab
