// SPDX-License-Identifier: Apache-2.0
// A scenario becomes conditions and plans, and means the same after it was resolved.
#include "engine/files/error.h"
#include "engine/scenario/testing/any_scenario.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::scenario = {"scenario",
                                 [](const std::string& bytes) {
                                   if (!any_scenario::read(bytes)) throw InvalidInput("rejected");
                                 },
                                 any_scenario::words};

}  // namespace headlab::fuzz
