// SPDX-License-Identifier: Apache-2.0
/// \file The registry of the laws that set a scenario up before anything is drawn: subspaces, head
/// weights, queries. To add one write its file under engine/scenario/law/, add it to its variant
/// here, test it, and give it a row in docs/laws.md.
#pragma once

#include <variant>

#include "engine/scenario/law/queries/design.h"
#include "engine/scenario/law/queries/points.h"
#include "engine/scenario/law/subspaces/aligned.h"
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

using SubspaceLaw = std::variant<OrthogonalSubspaces, AlignedSubspaces, HaarSubspaces,
                                 CoordinateSubspaces, PrincipalAngleSubspaces, EquiangularSubspaces,
                                 ExplicitSubspaces, FileSubspaces, LearnedSubspaces>;
using WeightLaw =
    std::variant<UniformWeights, ExplicitWeights, GeometricWeights, OptimalWeights, LearnedWeights>;
using QueryLaw = std::variant<PointQueries, DesignQueries>;

}  // namespace headlab
