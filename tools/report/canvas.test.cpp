// SPDX-License-Identifier: Apache-2.0
#include "tools/report/canvas.h"

#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

/// The lengths of the lines and gaps of a colour, none of a line that is whole.
std::vector<int> dashes_of(const std::string& color) {
  std::smatch found;
  const std::string style = picture_style;
  std::vector<int> lengths;
  const std::regex rule("\\.line\\." + color + "\\{stroke-dasharray:([0-9 ]+)\\}");
  if (!std::regex_search(style, found, rule)) return lengths;
  std::istringstream text(found[1].str());
  for (int length = 0; text >> length;) lengths.push_back(length);
  return lengths;
}

bool has_ink(const std::vector<int>& dashes, int place) {
  if (dashes.empty()) return true;
  int at = place % std::accumulate(dashes.begin(), dashes.end(), 0);
  for (std::size_t i = 0;; ++i) {
    if (at < dashes[i]) return i % 2 == 0;
    at -= dashes[i];
  }
}

TEST(PictureStyle, ShowsALineBelowAnotherInItsPlace) {
  for (const auto& [below, above] :
       {std::pair("c0", "c1"), std::pair("c0", "c2"), std::pair("c0", "c3"), std::pair("c1", "c2"),
        std::pair("c1", "c3"), std::pair("c2", "c3")}) {
    int seen = 0;
    for (int place = 0; place < 72; ++place) {
      seen += has_ink(dashes_of(below), place) && !has_ink(dashes_of(above), place);
    }
    EXPECT_GE(seen, 9) << below << " below " << above;
  }
}

}  // namespace
}  // namespace headlab::tools
