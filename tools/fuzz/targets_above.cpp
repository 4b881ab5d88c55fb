// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const std::vector<const Target*> targets = {&reader::claims, &reader::differences, &reader::report,
                                            &reader::tables};

}  // namespace headlab::fuzz
