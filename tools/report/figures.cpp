// SPDX-License-Identifier: Apache-2.0
#include "tools/report/figures.h"

#include <algorithm>
#include <iterator>

#include "tools/report/depth_sections.h"

namespace headlab::tools {
namespace {

struct PictureEntry {
  std::vector<SourceKind> kinds;
  std::vector<Picture> (*make)(const Source&);
};

/// In the order of the page.
const std::vector<PictureEntry>& figure_entries() {
  static const std::vector<PictureEntry> all = {
      {{SourceKind::run, SourceKind::theory}, components_figures},
      {{SourceKind::run}, difference_figures},
      {{SourceKind::run, SourceKind::theory}, decomposition_figures},
      {{SourceKind::run, SourceKind::theory}, head_covariance_figures},
      {{SourceKind::run}, precision_figures},
      {{SourceKind::verdicts}, verdict_figures},
      {{SourceKind::allocation}, allocation_figures},
      {{SourceKind::allocation}, growth_figures},
      {{SourceKind::map}, regime_figures},
      {{SourceKind::heads}, diversity_figures},
      {{SourceKind::heads}, alike_figures},
  };
  return all;
}

}  // namespace

std::vector<Picture> figures_of(const Source& source) {
  // Their conditions have layers in place of errors.
  if (is_study_of_depth(source)) return layers_figures(source);
  std::vector<Picture> all;
  for (const PictureEntry& entry : figure_entries()) {
    if (std::ranges::find(entry.kinds, source.kind) == entry.kinds.end()) continue;
    std::ranges::move(entry.make(source), std::back_inserter(all));
  }
  return all;
}

}  // namespace headlab::tools
