// SPDX-License-Identifier: Apache-2.0
/// \file Which kernels weigh the keys of a plan, in words: for tests and benchmarks.
#pragma once

#include <string>

#include "kernels/cuda/launch_plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// The form of the inner loop, as tools/check/slots.toml names it.
inline const char* form_of(Microkernel microkernel) {
  using enum Microkernel;
  switch (microkernel) {
    case distances1:
      return "distances1";
    case distances2:
      return "distances2";
    case distances4:
      return "distances4";
    case distances8:
      return "distances8";
    case dots1:
      return "dots1";
    case dots2:
      return "dots2";
    case dots3:
      return "dots3";
    case dots4:
      return "dots4";
    case shifted1:
      return "shifted1";
    case shifted2:
      return "shifted2";
    case shifted4:
      return "shifted4";
    case tensor8:
      return "tensor8";
    case tensor16:
      return "tensor16";
    case tensor32:
      return "tensor32";
    case tensor64:
      return "tensor64";
    case any:
      break;
  }
  return "any";
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
