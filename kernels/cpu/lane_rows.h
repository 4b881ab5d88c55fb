// SPDX-License-Identifier: Apache-2.0
/// \file Factors of products: rows of numbers, and panels of columns.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace headlab {

/// Rows of numbers, each contiguous.
template <class T>
struct LaneRows {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;  ///< from row to row

  T* row(std::size_t i) const { return data + i * stride; }
};

/// A right factor that many products share, as they take it: panels of neighbouring columns, row
/// after row [columns / width][rows][width], with zeros after the last column.
template <class T>
struct Panels {
  /// That of the widest vectors.
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(T* numbers) const { ::operator delete(numbers, alignment); }
  };

  std::size_t rows = 0, columns = 0, width = 0;
  std::size_t room = 0;  ///< numbers that there is memory for
  std::unique_ptr<T[], Free> numbers = {};
};

/// Neighbouring rows and columns of a factor in panels.
template <class T>
struct PanelPart {
  const Panels<T>& of;
  std::size_t first_row = 0, rows = of.rows;
  std::size_t first_column = 0, columns = of.columns;
};

}  // namespace headlab
