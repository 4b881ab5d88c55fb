// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/characters.h"

#include <gtest/gtest.h>

#include "engine/files/words.h"

namespace headlab::tools {
namespace {

TEST(AsciiText, HasAFormForEverySymbol) {
  EXPECT_EQ(ascii_text("1.5 ± 0.2, bias², ≥ 0, – […]"), "1.5 +- 0.2, bias^2, >= 0, - [...]");
  EXPECT_EQ(ascii_text("▕██▌ ▏"), "|##: |");
  EXPECT_EQ(ascii_text("Müller\xff"), "M?ller?");
  EXPECT_EQ(shown("±"), "±");  // unless the program has asked for its locale
}

TEST(Visible, ShowsWhatCommandsATerminalOrTurnsALine) {
  EXPECT_EQ(visible("a\x1b[31m\u202eb\u0085\x7f\r\n\r\tMüller\xff"),
            "a\\u001b[31m\\u202eb\\u0085\\u007f\r\n\\u000d\tMüller?");
  EXPECT_EQ(visible("± ² … \u2029 \u05d0"), "± ² … \u2029 \u05d0");  // what is written as usual
}

}  // namespace
}  // namespace headlab::tools
