// SPDX-License-Identifier: Apache-2.0
/// \file One condition: a scenario with every parameter fixed, and what the rest of the engine asks
/// of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "engine/scenario/preparation.h"
#include "engine/scenario/sweep.h"
#include "kernels/copy_on_write.h"
#include "kernels/statistics/moments.h"

namespace headlab {

struct ControlLaw;
struct DesignLaw;
struct KernelLaw;
struct Learning;
struct NoiseLaw;
struct Plan;
struct QueryLaw;
struct RegressionLaw;
struct SequenceLaw;
struct StackSetting;
struct SubspaceLaw;
struct WeightLaw;

/// One condition: a scenario with every parameter fixed. Who reads its laws includes kernels/laws.h
/// for the data, kernels/kernel_laws.h for the kernel, engine/scenario/setup_laws.h for the others.
struct Condition {
  // Compiled once.
  Condition();
  ~Condition();
  Condition(const Condition&);
  Condition(Condition&&) noexcept;
  Condition& operator=(const Condition&);
  Condition& operator=(Condition&&) noexcept;

  std::string name;
  std::string aims;

  std::uint64_t n = 1;  ///< training points in one training set
  CopyOnWrite<DesignLaw> design;
  CopyOnWrite<RegressionLaw> regression;
  CopyOnWrite<NoiseLaw> noise;
  CopyOnWrite<SequenceLaw> sequence;
  bool fixed_design = false;
  std::uint64_t design_seed = 0;

  int heads = 1;  ///< H
  int k = 1;      ///< per-head dimension d_k
  CopyOnWrite<SubspaceLaw> subspaces;
  CopyOnWrite<KernelLaw> kernel;
  CopyOnWrite<WeightLaw> weights;
  SharedStages mechanism;

  CopyOnWrite<QueryLaw> queries;

  std::uint64_t seed = 0;
  std::uint64_t replicates = 0;
  Estimator estimator = Estimator::conditional;
  MomentMode moments = MomentMode::pairwise;
  CopyOnWrite<ControlLaw> controls;
  Measures measures;

  /// Not null: a study of depth, a stack of layers on a token set. The rest of the condition then
  /// has its name, n, seed and replicates alone.
  std::shared_ptr<const StackSetting> stack;

  Parameters parameters;           ///< the scenario after --set and sweep, without [sweep]
  std::vector<std::string> swept;  ///< values of the swept keys in this condition, as TOML
};

/// d, the dimension of the design.
int dimension_of(const Condition& condition);

/// Q.
int query_count(const Condition& condition);

/// True of the kernel law softmax.
bool is_softmax(const Condition& condition);

/// True where queries are projected by matrices of their own.
bool projects_queries_apart(const Condition& condition);

/// What the laws of a scenario may need to know of the rest of it.
Sizes sizes_of(const Condition& condition);

/// What a run of the condition keeps, before there is a plan.
MomentLayout layout_of(const Condition& condition);

/// Fits stages of the mechanism to the points and queries of the condition, where any is fitted,
/// and tries those that change projections. The reader of scenarios calls it. Throws
/// ParameterError, with its key in the table of stages.
void calibrate_stages(Condition& condition);

/// The plan of one condition, ready for a backend. Weights of law `optimal` must have been found
/// (engine/run/pilot.h), and heads of law `learned` that are learned once (engine/run/
/// learned_heads.h). Throws ParameterError.
Plan make_plan(const Condition& condition, const Preparation& found = {});

/// True where heads or queries are drawn again for every leaf.
bool redraws(const Condition& condition);

/// Gives the plan of a condition the heads and queries of a draw, where they are drawn again. Leaf
/// i of a run has draw i; make_plan() gives draw 0.
void set_draw(Plan& plan, const Condition& condition, std::uint64_t draw);

/// W_h, h = 1..H, of a scenario; subspace_bases() in engine/scenario/subspaces.h has their column
/// spaces as matrices. Throws ParameterError.
Subspaces make_subspaces(const Condition& condition, const Preparation& found = {});

/// What sets a condition apart from plain heads on independent points: "ar1 sequence", "window".
std::vector<std::string> stages_in_force(const Condition& condition);

/// How a condition learns, of law "learned": the start and what the scenario says.
Learning make_learning(const Condition& condition);

/// True where heads are learned once, before a plan can be made.
bool learns_heads_once(const Condition& condition);

/// Where `key` ("data.n") stands in the text of the scenario, or else the innermost table on the
/// way to it; empty for a scenario that was not read from a text.
std::string source_location(const Condition& condition, const std::string& key);

/// Throws InvalidInput at the key that redraws heads or queries, with the reason why they must be
/// given, where they are drawn again.
void require_one_draw(const Condition& condition, const std::string& reason);

/// Throws InvalidInput("WHERE: KEY: PROBLEM") for a fault that is found after the scenario was
/// read.
[[noreturn]] void reject(const Condition& condition, const std::string& key,
                         const std::string& problem);

}  // namespace headlab
