// SPDX-License-Identifier: Apache-2.0
/// \file The registry of the laws that set a scenario up before anything is drawn: subspaces, head
/// weights, queries, controls. To add one write its file under engine/scenario/law/, add it to its
/// variant here, test it, and give it a row in docs/laws.md.
#pragma once

#include <variant>

#include "engine/scenario/law/controls/exact.h"
#include "engine/scenario/law/controls/none.h"
#include "engine/scenario/law/queries/design.h"
#include "engine/scenario/law/queries/points.h"
#include "engine/scenario/law/sequence/sequence.h"
#include "engine/scenario/law/subspaces/aligned.h"
#include "engine/scenario/law/subspaces/blocks.h"
#include "engine/scenario/law/subspaces/coordinates.h"
#include "engine/scenario/law/subspaces/equiangular.h"
#include "engine/scenario/law/subspaces/explicit.h"
#include "engine/scenario/law/subspaces/file.h"
#include "engine/scenario/law/subspaces/haar.h"
#include "engine/scenario/law/subspaces/learned.h"
#include "engine/scenario/law/subspaces/orthogonal.h"
#include "engine/scenario/law/subspaces/principal_angles.h"
#include "engine/scenario/law/weights/explicit.h"
#include "engine/scenario/law/weights/geometric.h"
#include "engine/scenario/law/weights/learned.h"
#include "engine/scenario/law/weights/optimal.h"
#include "engine/scenario/law/weights/uniform.h"

namespace headlab {

struct SubspaceLaw
    : std::variant<OrthogonalSubspaces, AlignedSubspaces, BlockSubspaces, HaarSubspaces,
                   CoordinateSubspaces, PrincipalAngleSubspaces, EquiangularSubspaces,
                   ExplicitSubspaces, FileSubspaces, LearnedSubspaces> {
  using variant::variant;
};
struct WeightLaw : std::variant<UniformWeights, ExplicitWeights, GeometricWeights, OptimalWeights,
                                LearnedWeights> {
  using variant::variant;
};
struct SequenceLaw : std::variant<IndependentSequence, Ar1Sequence, RowsSequence> {
  using variant::variant;
};
struct QueryLaw : std::variant<PointQueries, DesignQueries> {
  using variant::variant;
};
struct ControlLaw : std::variant<NoControls, ExactControls> {
  using variant::variant;
};

/// A law with a parameter `redraw`, which generates any of its draws.
template <class Law>
concept Redrawable = requires(const Law& law) {
  law.redraw;
};

/// True where a law draws heads or queries again for every leaf.
template <class... Laws>
bool redraws(const std::variant<Laws...>& laws) {
  return std::visit(
      []<class Law>(const Law& law) {
        if constexpr (Redrawable<Law>) return law.redraw;
        return false;
      },
      laws);
}
/// True where a law would with redraw = true.
template <class... Laws>
bool redrawable(const std::variant<Laws...>& laws) {
  return std::visit([]<class Law>(const Law&) { return Redrawable<Law>; }, laws);
}

}  // namespace headlab
