// SPDX-License-Identifier: Apache-2.0
// JSON of headlab becomes a page: summary.json, verdicts.json, map.json, allocations, heads.
#include "engine/files/error.h"
#include "tools/fuzz/target.h"
#include "tools/report/page.h"
#include "tools/report/source.h"

namespace headlab::fuzz {

const Target reader::report = {
    "report", [](const std::string& bytes) {
      std::optional<tools::Source> source = tools::read_document(bytes, "fuzz");
      if (!source) throw InvalidInput("is of no kind that a report knows");
      const std::string page = tools::report_page({std::move(*source)});
      require(page.find(tools::report_generator) != std::string::npos, "a page without its head");
    }};

}  // namespace headlab::fuzz
