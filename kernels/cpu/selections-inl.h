// SPDX-License-Identifier: Apache-2.0
// What all windows of an ensemble keep.
#if defined(HEADLAB_CPU_SELECTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_SELECTIONS_INL_H
#undef HEADLAB_CPU_SELECTIONS_INL_H
#else
#define HEADLAB_CPU_SELECTIONS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/block_means-inl.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/keep-inl.h"
#include "kernels/cpu/repair-inl.h"
#include "kernels/cpu/training_set-inl.h"
#include "kernels/cpu/window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The selections [Q][H] of the windows of some heads. Exponents are shown to them in passes: the
/// first finds the largest of every window, up to two more what else a rule has to know.
class Selections {
 public:
  /// Of no window. \param panel_keys the most keys of a panel
  Selections(const Heads& heads, std::size_t panel_keys)
      : heads_(heads), scratch_(allocate_aligned<float>(panel_keys)) {}
  /// Of all windows at so many queries; `levels` are those of the keys.
  void set(std::size_t queries, const Levels& levels) {
    queries_ = queries;
    all_.resize(queries * heads_.size());
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const HeadKeep& keep = heads_[h]->keep();
      if (keep.pooled) means_.push_back({h, BlockMeans(*heads_[h], levels)});
      more_passes_ = std::max(more_passes_, Selection::more_passes(keep));
    }
  }

  /// Begins the first pass.
  void reset() {
    pass_ = 0;
    for_all([](std::size_t, Selection& one, const Head& head) { one.reset(head); });
    for (HeadMeans& of_head : means_) of_head.means.reset();
  }
  /// Passes after the first that some head needs, up to two.
  int more_passes() const { return more_passes_; }
  /// Begins pass 1 or 2; false where no head needs it.
  bool begin_pass(int pass, std::span<Window> windows) {
    if (more_passes_ < pass) return false;
    pass_ = pass;
    for_all([&](std::size_t i, Selection& one, const Head& head) {
      if (Selection::more_passes(head.keep()) < pass) return;
      one.begin_pass(head);
      if (!head.keep().pooled) return;
      if (windows[i].shift > never) windows[i].only_key = no_key;
      windows[i].shift = never;
    });
    return true;
  }
  void finish(std::span<const Window> windows) {
    for_all([&](std::size_t i, Selection& one, const Head& head) {
      one.finish(head, windows[i].shift);
    });
  }

  /// True if the h-th head is to be shown its exponents in this pass.
  bool looks(std::size_t h) const { return Selection::more_passes(heads_[h]->keep()) >= pass_; }
  /// Shows the exponents of a panel to a window of head h at query q. They may change.
  HWY_ATTR void add(const KeyPanel& panel, std::size_t q, std::size_t h, Window& at,
                    float* exponents) {
    const Head& head = *heads_[h];
    Selection& one = selection(q, h);
    if (pass_ == 0) {
      one.add(head, panel, exponents);
      Repair::look(panel, head, q, at, exponents);
    } else if (head.keep().pooled) {
      one.apply(head, panel, 0, exponents);
      Repair::raise(panel, at, exponents);
    } else {
      one.add_again(head, panel, exponents, at.shift, scratch_.get());
    }
  }
  /// Adds the mean keys of blocks in some tiles of a training set.
  void add_means(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    if (pass_ > 0) return;
    for (HeadMeans& of : means_) {
      const std::size_t h = of.h;
      const Head& head = *heads_[h];
      of.means.add(set, tile, tiles,
                   [&](const KeyTile& keys, std::uint64_t first, std::size_t count) {
                     for (std::size_t q = 0; q < queries_; ++q) {
                       head.mean_exponents(keys, q, scratch_.get());
                       for (std::size_t i = 0; i < count; ++i)
                         selection(q, h).add_block(first + i, scratch_[i]);
                     }
                   });
    }
  }

  /// Makes the exponents that are kept relative to the largest, and the others -inf.
  HWY_ATTR void apply(const KeyPanel& panel, std::size_t q, std::size_t h, const Window& at,
                      float* exponents) const {
    if (at.only_key != no_key) {
      Repair::shift(at, panel, exponents);
    } else {
      all_[q * heads_.size() + h].apply(*heads_[h], panel, at.shift, exponents);
    }
  }

  /// Sets the exponents of a panel that none of some heads keeps at query q to -inf, for those that
  /// see some of it. \param windows [H] \param row returns the exponents of a head
  template <class Row>
  HWY_ATTR void apply_together(const KeyPanel& panel, std::size_t q,
                               std::span<const std::size_t> heads, const Window* windows,
                               const Row& row) {
    kept_.assign(panel.points, 0);
    for (const std::size_t h : heads) {
      if (heads_[h]->sight(panel) == Sight::none) continue;
      if (windows[h].only_key == no_key) {
        selection(q, h).mark(*heads_[h], panel, row(h), kept_.data());
      }
    }
    for (const std::size_t h : heads) {
      if (windows[h].only_key == no_key) continue;
      const std::int64_t only = windows[h].only_key - static_cast<std::int64_t>(panel.first_key());
      if (only >= 0 && only < static_cast<std::int64_t>(panel.points)) {
        kept_[static_cast<std::size_t>(only)] = 1;
      }
    }
    for (const std::size_t h : heads) {
      if (heads_[h]->sight(panel) == Sight::none) continue;
      float* exponents = row(h);
      for (std::size_t i = 0; i < panel.points; ++i) {
        if (kept_[i] == 0) exponents[i] = never;
      }
    }
  }

 private:
  struct HeadMeans {
    std::size_t h;
    BlockMeans means;
  };

  Selection& selection(std::size_t q, std::size_t h) { return all_[q * heads_.size() + h]; }
  /// Calls body(i, selection, head) for the windows i in their order.
  template <class Body>
  void for_all(const Body& body) {
    for (std::size_t i = 0; i < all_.size(); ++i) body(i, all_[i], *heads_[i % heads_.size()]);
  }

  const Heads& heads_;
  std::size_t queries_ = 0;
  int pass_ = 0;
  int more_passes_ = 0;
  std::vector<Selection> all_;                  ///< [Q][H]
  std::vector<HeadMeans> means_;                ///< of the heads with pooled scores
  std::vector<unsigned char> kept_;             ///< of a panel
  hwy::AlignedFreeUniquePtr<float[]> scratch_;  ///< of a panel
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
