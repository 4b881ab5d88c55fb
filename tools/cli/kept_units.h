// SPDX-License-Identifier: Apache-2.0
/// \file --shard and --resume of commands that consist of independent parts: validate, allocate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/session.h"
#include "engine/run/units.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"
#include "tools/cli/output_folder.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// What a command keeps of its parts in the folder of --out.
class KeptUnits {
 public:
  /// Makes the folder, reads what is kept there, and has the session use it. Without --out nothing
  /// is kept. Throws InvalidInput where options contradict one another, what is there is of another
  /// study, or results would be replaced.
  /// \param command  "validate --calibrate"
  /// \param results  files of earlier results
  /// \param parts    all that the results depend on, besides program and machine
  KeptUnits(const CommonArguments& run, const std::string& command, const Texts& results,
            const Texts& parts, Session& session);

  /// That of --out; null without one.
  const OutputFolder* folder() const { return folder_ ? &*folder_ : nullptr; }

  /// True where nothing but the file of a shard is to be written.
  bool is_shard() const { return units_ && units_->is_shard(); }
  /// Writes the file of a shard and says so; the exit code of the command.
  ExitCode end_shard(const Outcome& outcome);
  /// The exit code of this command where it has written its results here before, `files`, and
  /// nothing else is asked for; it says so.
  std::optional<ExitCode> ended_before(const CommonArguments& run, const Texts& files) const;
  /// To be called before results are written: wherever that is cut off, --resume continues.
  void keep(const Outcome& outcome);
  /// After the results of all parts were written, or where not all of them are there. With `code`,
  /// that of the command, --resume finds that all is done.
  void end(const Outcome& outcome, std::optional<ExitCode> code = {});

 private:
  bool quiet_;
  std::string shard_;  ///< "shard 3 of 8"
  std::optional<OutputFolder> folder_;
  std::unique_ptr<Units> units_;
};

/// The content of a scenario and the numbers behind its laws, for the parts of KeptUnits.
std::vector<std::string> fingerprints_of(const Scenario& scenario);

}  // namespace headlab::tools
