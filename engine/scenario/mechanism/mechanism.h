// SPDX-License-Identifier: Apache-2.0
/// \file The stages of `[heads.mechanism]`, in the order in which they apply, and what they make of
/// a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/scenario/mechanism/compress.h"
#include "engine/scenario/mechanism/keep.h"
#include "engine/scenario/mechanism/levels.h"
#include "engine/scenario/mechanism/merge.h"
#include "engine/scenario/mechanism/stage.h"
#include "engine/scenario/mechanism/transform.h"
#include "engine/scenario/mechanism/window.h"

namespace headlab {

struct KernelLaw;

template <class... Stages>
using OptionalStages = std::tuple<std::optional<Stages>...>;

/// Stages that were given; without any a head is plain.
using MechanismStages = OptionalStages<TransformStage, CompressStage, MergeStage, LevelsStage,
                                       WindowStage, SkipStage, SinksStage, KeepStage>;

/// The stage of this type; empty where it was not given.
template <class Stage>
const std::optional<Stage>& stage(const MechanismStages& stages) {
  return std::get<std::optional<Stage>>(stages);
}

/// Calls visit(stage) for each that was given.
template <class Visitor>
void for_each_stage(const MechanismStages& stages, const Visitor& visit) {
  std::apply([&](const auto&... one) { ((one ? visit(*one) : void()), ...); }, stages);
}

/// Names of all stages in the order in which they apply.
std::vector<std::string> stage_names();

/// True where some stage was given, whatever it does.
bool any_stage(const MechanismStages& stages);

/// The stages of a condition. Plain heads hold none and copies share theirs: there may be 10^6
/// conditions.
class SharedStages {
 public:
  SharedStages() = default;
  SharedStages(const MechanismStages& stages)
      : given_(any_stage(stages) ? std::make_shared<const MechanismStages>(stages) : nullptr) {}

  operator const MechanismStages&() const;

 private:
  std::shared_ptr<const MechanismStages> given_;
};

/// Names of the stages that change something for n points and heads of dimension k, in order. A
/// window is looked at together with its sinks: where both see every token neither is in force.
std::vector<std::string> stages_in_force(const MechanismStages& stages, std::uint64_t n, int heads,
                                         int k);

/// Those of them that leave projections as they are, so that no index of subspaces sees them.
std::vector<std::string> stages_of_tokens(const MechanismStages& stages, std::uint64_t n, int heads,
                                          int k);

/// The parameter that has a number for each head, as "window" or "keep.top"; empty where there is
/// none.
std::string parameter_per_head(const MechanismStages& stages);

/// Checks every stage; throws ParameterError("KEY" or "KEY.PARAMETER", problem).
void check_stages(const MechanismStages& stages, const Sizes& sizes, const KernelLaw& kernel,
                  bool projects_queries_apart);

/// Lets the stages that change projections change those of the heads.
void apply_stages(const MechanismStages& stages, Subspaces& subspaces);

/// What the other stages make of n points and so many heads.
Mechanism mechanism_of(const MechanismStages& stages, std::uint64_t n, int heads);

}  // namespace headlab
