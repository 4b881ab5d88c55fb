// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/characters.h"

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

TEST(AsciiText, HasAFormForEverySymbol) {
  EXPECT_EQ(ascii_text("1.5 ± 0.2, bias², ≥ 0, – […]"), "1.5 +- 0.2, bias^2, >= 0, - [...]");
  EXPECT_EQ(ascii_text("▕██▌ ▏"), "|##: |");
  EXPECT_EQ(ascii_text("Müller\xff"), "M?ller?");
  EXPECT_EQ(shown("±"), "±");  // unless the program has asked for its locale
}

}  // namespace
}  // namespace headlab::tools
