// SPDX-License-Identifier: Apache-2.0
/// \file What a results file says of the scenario it is from, of the targets of the run and of its
/// share of the scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/moments/precision.h"
#include "engine/results/share.h"

namespace headlab {

struct Condition;
struct Scenario;
/// Names of the measures of a scenario that has any, with spaces between.
inline constexpr const char* measures_attribute = "measures";

/// Puts the attributes that name the scenario, its text and the program; `seed` where it has one
/// seed.
void write_scenario(const NetcdfGroup& root, const Scenario& scenario, const Provenance& program);

/// The short name of a swept key: its last part, or the whole key with `_` for dots where another
/// one ends in that. A whole section, as `heads`, is swept_heads, because `heads` is their number.
/// Labels have the name that the scenario gives them.
std::string short_key(const std::vector<std::string>& keys, std::size_t s);

/// A swept key in the attribute `swept`.
std::string swept_name(const std::string& key);

/// Writes one coordinate a swept key, over `dimension` with the values that `conditions` have:
/// whole numbers or numbers where all are, texts otherwise. Called last, because a coordinate bears
/// the short name of its key where nothing else in the group does, otherwise the key with `_` for
/// dots. The values are also written under the dotted key, as in earlier versions, with the
/// attribute `swept` that lists these.
void write_swept(const NetcdfGroup& root, const std::string& dimension,
                 const std::vector<std::string>& keys,
                 std::span<const Condition* const> conditions);

/// Adds attributes `until...` and `target_met` to a root group, and the variables of the looks.
/// \param complete  no look is to come
void write_precision(const NetcdfGroup& root, const Precision& precision, bool complete);

/// The same as written, nothing where a run had no targets. Throws NetcdfError.
std::optional<Precision> read_precision(const NetcdfGroup& root);

/// Adds attributes `shard`, `shards`, `shard_...` to a root group and the variables of the parts,
/// over the dimension `part`.
void write_share(const NetcdfGroup& root, const Share& share);

/// The same as written, nothing for the results of a whole run. Throws NetcdfError.
std::optional<Share> read_share(const NetcdfGroup& root);

}  // namespace headlab
