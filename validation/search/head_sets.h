// SPDX-License-Identifier: Apache-2.0
/// \file Families of head sets: configurations of H heads of dimension k in d dimensions, each of
/// which is a law of subspaces that a scenario file can name.
///
/// Angles are radians. Explicit matrices use the cosines 0.6, 0.8, 0.28 and 0.96, whose sines are
/// as short, so that columns are orthonormal as they are written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scenario/setup_laws.h"
#include "validation/diversity/indices.h"

namespace headlab {

/// Number of heads H, their dimension k and the dimension d of the design.
struct HeadSizes {
  int heads = 2;  ///< H >= 2
  int k = 1;      ///< 1 <= k <= d
  int d = 2;
};

/// How much there is to say about a head set, or about a pair of them; less is simpler.
struct Simplicity {
  int numbers = 0;  ///< that tell the set from others of its law
  int digits = 0;   ///< those numbers are written with
};

/// One configuration of heads.
struct HeadSet {
  std::string family;  ///< "named", "principal angles", ...: what rates are reported for
  HeadSizes sizes;
  SubspaceLaw law;
  Simplicity simplicity;

  /// W_1 .. W_H as a run makes them.
  Matrices subspaces() const;
  /// The law as a scenario says it: `{ law = "principal_angles", angles = [0, 1.5708] }`.
  std::string toml() const;
};

/// Returns every head set of every family for the given sizes, simplest families first:
///
/// - `named`: all heads aligned; all orthogonal (where H k <= d)
/// - `principal angles`: all k-multisets of 0, 0.1 .. 1.5, 1.5708; with H > 2 every further head at
///   these angles to head 1 (where H k <= d)
/// - `equiangular`: H > 2 and H k <= d. Every pair at 0.1 .. 1.5
/// - `blocks`: H > 2 and H k <= d. Column j of all heads lies in block j of H coordinates, and
/// there
///   the heads are one of: aligned; orthogonal; an aligned pair and the others orthogonal; two
///   clusters, or a star around head 1, with a cosine of 0.6, 0.8, 0.28 or 0.96 (two clusters also
///   with 0). All k-multisets of these.
/// - `haar`: seeds 0 .. haar_draws - 1
///
/// Throws std::invalid_argument unless H >= 2 and 1 <= k <= d.
std::vector<HeadSet> head_sets(const HeadSizes& sizes, int haar_draws);

}  // namespace headlab
