// SPDX-License-Identifier: Apache-2.0
/// \file From the tables of a scenario, without its sweep, to a condition.
#pragma once

#include "engine/files/document.h"
#include "engine/scenario/condition.h"

namespace headlab {

class DataFiles;

/// Reads the sections of a study of depth.
Condition read_study_of_depth(const Value& root, DataFiles& files);

/// Reads those of a study of regression. \param simulates  points of the design are drawn
Condition read_study_of_regression(const Value& root, DataFiles& files, bool simulates);

}  // namespace headlab
