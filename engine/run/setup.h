// SPDX-License-Identifier: Apache-2.0
/// \file What is found once before a run, heads learned, weights and controls, kept for all of its
/// shards.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/scenario/preparation.h"

namespace headlab {

struct Condition;

/// The name of its file in the folder of the shards.
inline constexpr const char* setup_file_name = "setup.nc";

/// Preparations of conditions, in a file that shards share. The first one that finds something
/// keeps it, and the others read it. All would find the same bits, so that nothing is wrong where
/// two come at once.
class Setup {
 public:
  /// Reads the file where there is one. Throws InvalidInput with one line where it is damaged, of
  /// another program or of another study.
  /// \param study    SHA-256 of the scenario
  /// \param machine  backend and what its bits depend on
  /// \param option   what messages begin with
  Setup(std::string path, const std::string& study, const std::string& machine,
        std::string option = "--shard");

  const std::string& path() const { return path_; }

  /// What was found for a condition.
  std::optional<Preparation> find(const Condition& condition) const;
  /// Keeps it. Where the file cannot be written, or `stop` ends the wait for another process that
  /// writes it, the run goes on without.
  void keep(const Condition& condition, const Preparation& found,
            const std::function<bool()>& stop);

 private:
  void read();

  std::string path_;
  std::string study_;
  std::string option_;
  std::map<std::string, std::string> units_;
};

/// True where something is to be found before the condition is simulated.
bool needs_preparation(const Condition& condition);

}  // namespace headlab
