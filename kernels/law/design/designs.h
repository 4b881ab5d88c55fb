// SPDX-License-Identifier: Apache-2.0
/// \file The registry of the laws of a design; tokens are drawn from them too. To add one write its
/// file here and add it to the variant.
#pragma once

#include <variant>

#include "kernels/law/design/file.h"
#include "kernels/law/design/mixture.h"
#include "kernels/law/design/normal.h"
#include "kernels/law/design/sphere.h"
#include "kernels/law/design/student_t.h"
#include "kernels/law/design/uniform.h"

namespace headlab {

/// A struct rather than a name of its variant, so that a header can declare it and hold it
/// (kernels/copy_on_write.h) without this file.
struct DesignLaw : std::variant<NormalDesign, MixtureDesign, UniformDesign, StudentDesign,
                                SphereDesign, FileDesign> {
  using variant::variant;
};

}  // namespace headlab
