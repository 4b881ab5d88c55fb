// SPDX-License-Identifier: Apache-2.0
/// \file The registry of the laws that set a scenario up before anything is drawn: subspaces, head
/// weights, queries. To add one write its file under engine/law/, add it to its variant here, test
/// it, and give it a row in docs/scenario.md.
#pragma once

#include <variant>

#include "engine/law/queries/design.h"
#include "engine/law/queries/points.h"
#include "engine/law/subspaces/aligned.h"
#include "engine/law/subspaces/equiangular.h"
#include "engine/law/subspaces/explicit.h"
#include "engine/law/subspaces/file.h"
#include "engine/law/subspaces/haar.h"
#include "engine/law/subspaces/learned.h"
#include "engine/law/subspaces/orthogonal.h"
#include "engine/law/subspaces/principal_angles.h"
#include "engine/law/weights/explicit.h"
#include "engine/law/weights/geometric.h"
#include "engine/law/weights/learned.h"
#include "engine/law/weights/optimal.h"
#include "engine/law/weights/uniform.h"

namespace headlab {

using SubspaceLaw =
    std::variant<OrthogonalSubspaces, AlignedSubspaces, HaarSubspaces, PrincipalAngleSubspaces,
                 EquiangularSubspaces, ExplicitSubspaces, FileSubspaces, LearnedSubspaces>;
using WeightLaw =
    std::variant<UniformWeights, ExplicitWeights, GeometricWeights, OptimalWeights, LearnedWeights>;
using QueryLaw = std::variant<PointQueries, DesignQueries>;

}  // namespace headlab
