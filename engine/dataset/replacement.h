// SPDX-License-Identifier: Apache-2.0
/// \file A data set that takes the place of another one in the same folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/dataset/manifest.h"

namespace headlab {

/// The new set is written into FOLDER/.headlab-new. Once it is complete the old manifest is put
/// aside, so that none vouches for what is moved; the files that it lists are removed, those of the
/// new set moved to their places, and the new manifest last. Where that is cut short
/// end_replacement() goes on from there.

/// Where `dataset` is written to replace the set in `folder`: what an earlier attempt has of the
/// same set stays there, and what is of another one is removed. Throws RunFailed.
std::string begin_replacement(const std::string& folder, const Dataset& dataset,
                              const Provenance& program);

/// True where the sets are being exchanged, or folders of the new one are left that hold nothing.
bool is_being_replaced(const std::string& folder);

/// Puts a complete new set in place of the old one; does nothing where there is none. Returns the
/// files among those of the data set that are of neither. Throws RunFailed, and WorkStopped where
/// `stop` ends the wait for another process.
std::vector<std::string> end_replacement(const std::string& folder,
                                         const std::function<bool()>& stop);

}  // namespace headlab
