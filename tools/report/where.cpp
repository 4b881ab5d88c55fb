// SPDX-License-Identifier: Apache-2.0
/// \file Which of the conditions some are.
#include <algorithm>
#include <set>

#include "tools/report/scenario_sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {

std::string where_of(const Value::Array& conditions, const std::vector<std::size_t>& some) {
  if (some.size() == conditions.size()) return "";
  const Sweep sweep = sweep_of(conditions);
  for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
    std::set<std::size_t> here, elsewhere;
    for (std::size_t c = 0; c < conditions.size(); ++c) {
      (std::ranges::count(some, c) > 0 ? here : elsewhere).insert(sweep.places[c][k]);
    }
    if (std::ranges::any_of(here, [&](std::size_t level) { return elsewhere.contains(level); })) {
      continue;
    }
    std::vector<std::string> levels;
    for (const std::size_t level : here) levels.push_back(sweep.keys[k].levels[level].text);
    return "where " + sweep.short_key(k) + " is " + first_of(levels, " or ", " …");
  }
  return "in some conditions";
}

}  // namespace headlab::tools
