// SPDX-License-Identifier: Apache-2.0
// summary.json as diff reads it.
#include "engine/files/error.h"
#include "engine/results/stored_figures.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

void read_summary(const std::string& bytes) {
  if (!bytes.starts_with('{')) throw InvalidInput("is not an object");
  const StoredResults results(file_of(bytes));
  for (std::size_t i = 0; i < results.size(); ++i) {
    require(!results.parameters(i).empty(), "parameters");
    for (const NamedFigure& one : results.figures(i).figures) {
      require(!one.name.empty(), "a figure without a name");
    }
  }
}

}  // namespace

const Target reader::summary = {"summary", read_summary};

}  // namespace headlab::fuzz
