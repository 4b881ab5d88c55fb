// SPDX-License-Identifier: Apache-2.0
/// \file Whether attention computed from a layer's q, k and v is what the model did.
#pragma once

#include <limits>
#include <string>

#include "engine/activations/activations.h"

namespace headlab {

/// Distances to what the model gave, NaN where it gave nothing to compare with.
struct Identity {
  double variation_mean = std::numeric_limits<double>::quiet_NaN();
  double variation_max = std::numeric_limits<double>::quiet_NaN();
  double z_relative = std::numeric_limits<double>::quiet_NaN();
  double output_relative = std::numeric_limits<double>::quiet_NaN();

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("total_variation_mean", variation_mean, "total variation to the model's attention");
    visit("total_variation_max", variation_max, "the largest of them");
    visit("z_relative", z_relative, "size of the error of z over the size of the model's");
    visit("output_relative", output_relative, "the same of the output of the block");
  }
};

/// Compares the weights of the sequences with `attention`, z and the output of eight sequences.
/// Throws InvalidInput where they are those of another computation, and says which one where it is
/// one of: scale 1 or k^-1/2, the other mask, groups in turn, heads third.
/// \param exact  weights in float64, whatever the layer's numbers are
Identity identity_of(const LayerActivations& layer, bool exact, int threads);

/// A number with two digits.
std::string rounded_text(double number);

/// One line for a person.
std::string identity_text(const Identity& identity);

}  // namespace headlab
