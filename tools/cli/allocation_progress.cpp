// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/allocation_progress.h"

#include "tools/cli/figure_text.h"

namespace headlab::tools {

void show(ProgressDisplay& display, const std::string& setting, const AllocationProgress& progress,
          double seconds) {
  const std::string words = setting + ": " + progress.stage;
  const std::string percent = std::to_string(static_cast<int>(100 * progress.share)) + " %";
  display.show(
      seconds,
      [&](std::size_t width) {
        constexpr std::size_t bar_width = 20;
        std::string line =
            "▕" + left(bar(progress.share, bar_width), bar_width) + "▏" + right(percent, 6);
        if (display_width(line) + 2 + display_width(words) <= width) line += "  " + words;
        return display_width(line) <= width ? line : "";
      },
      [&] { return words + ", " + percent; });
}

}  // namespace headlab::tools
