// SPDX-License-Identifier: Apache-2.0
/// \file The stack of attention layers that benchmarks time: n = d = 32, H = 4, d_k = d_v = 8, 8
/// layers, softmax, Gaussian maps, skip 1, rms pre norm; tokens and weights drawn. stack.toml is
/// the same as a scenario.
#pragma once

#include <cmath>
#include <memory>

#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"

namespace headlab::bench {

inline constexpr int stack_tokens = 32;
inline constexpr int stack_heads = 4;
inline constexpr int stack_rank = 8;
inline constexpr int stack_layers = 8;

inline Plan stack_plan() {
  Plan plan;
  plan.n = stack_tokens;
  plan.d = stack_tokens;
  plan.seed = 1;
  NormalDesign design;
  design.dim = stack_tokens;
  plan.design = design.sampler(plan.table);
  Stack stack;
  stack.layers = stack_layers;
  stack.heads = stack_heads;
  stack.temperature = std::sqrt(static_cast<double>(stack_rank));
  stack.maps = GaussianMaps{.k = stack_rank, .value_dim = stack_rank};
  stack.skip = 1;
  stack.norm = {.kind = NormKind::rms, .place = NormPlace::pre};
  plan.stack = std::make_shared<const Stack>(stack);
  return plan;
}

}  // namespace headlab::bench
