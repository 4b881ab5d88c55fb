// SPDX-License-Identifier: Apache-2.0
/// \file Which kernels weigh the keys of a plan, in words: for tests and benchmarks.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

#include "kernels/cuda/launch_plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// The form of the inner loop, as tools/check/slots.toml names it.
inline const char* form_of(Microkernel microkernel) {
  constexpr const char* names[] = {"distances1", "distances2", "distances4", "distances8",
                                   "dots1",      "dots2",      "dots3",      "dots4",
                                   "shifted1",   "shifted2",   "shifted4",   "tensor8",
                                   "tensor16",   "tensor32",   "tensor64",   "any"};
  static_assert(std::size(names) == static_cast<std::size_t>(Microkernel::any) + 1);
  return names[static_cast<std::size_t>(microkernel)];
}

struct KernelChoice {
  std::string form;  ///< form_of, or fallback where every query takes it
  std::string keys;  ///< where they come from, and whether they have a row more
  std::string sums;  ///< of what, and where they are made
  std::string passes;
};

inline KernelChoice choice_of(const LaunchPlan& launch) {
  KernelChoice choice;
  const TotalsLayout& totals = launch.totals;
  choice.form = launch.fallback_only ? "fallback" : form_of(launch.microkernel);
  choice.keys = launch.projects ? "projected" : "read";
  if (launch.extra_row == ExtraRow::prior) choice.keys += ", prior";
  if (launch.extra_row == ExtraRow::mask || launch.masks) choice.keys += ", hidden";
  if (launch.fallback_only) {
    choice.sums = totals.pairs ? "pairs, float64" : "heads, float64";
  } else if (launch.register_heads > 0) {
    choice.sums = "pairs of " + std::to_string(launch.register_heads) + " in registers";
  } else if (totals.pairs) {
    choice.sums = "pairs on tensor cores, sides " + std::to_string(pair_sides(totals.heads));
  } else {
    choice.sums = launch.bounds_squares ? "heads, squares bounded" : "heads";
  }
  choice.passes = totals.scaled && totals.ensemble ? "values, noise, ensemble"
                  : totals.scaled                  ? "values, noise"
                  : totals.ensemble                ? "values, ensemble"
                                                   : "values";
  return choice;
}

/// The members of a JSON object.
inline std::string json_of(const KernelChoice& choice) {
  return "\"form\": \"" + choice.form + "\", \"keys\": \"" + choice.keys + "\", \"sums\": \"" +
         choice.sums + "\", \"passes\": \"" + choice.passes + "\"";
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
