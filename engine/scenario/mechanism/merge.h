// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/scenario/mechanism/stage.h"

namespace headlab {

/// Groups of successive points become tokens, see Merge in kernels/mechanism.h. Multi-head temporal
/// latent attention (Deng and Woodland, arXiv:2505.13544) sums latents under learned gates; the
/// mean is headlab's idealisation of it.
struct MergeStage {
  static constexpr const char* name = "merge";
  static constexpr const char* summary =
      "groups of successive points become tokens, by their means";
  static constexpr const char* example = "stride = 2";
  static constexpr const char* shorthand = "stride";

  std::uint64_t stride = 1;
  std::optional<double> gate = {};

  bool operator==(const MergeStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("stride", stride, counts_from(1), "points of a token");
    visit.optional("gate", gate, inside(0, 1e6), "weight of a point in its token, default a mean");
  }

  void check(const StageSetting&) const {}

  void apply(Mechanism& mechanism, const Sizes&) const {
    mechanism.merge = {.stride = stride, .gate = gate};
  }
};

}  // namespace headlab
