// SPDX-License-Identifier: Apache-2.0
/// \file What every regression law is made of.
///
///     name, summary, equation, example   as of a kernel law (kernels/law/kernel/kernel_law.h)
///     parameters(visitor)    description of the parameters, see kernels/parameter.h
///     check(d)               throws where they do not fit points of d elements
///     bound()                the largest |m(x)|, infinite where nothing bounds it
///     function(table, d)     the function object m, whose vectors stand in the table
///
/// Of the function element j of the point stands at x[j * stride]; `row` is the row of the data
/// file it was drawn from, else 0. T is float64 (reference, truth at the queries), float32, or a
/// tile of float32 points side by side; Number is what the table holds.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/counted.h"
#include "kernels/hd.h"
#include "kernels/math.h"
#include "kernels/parameter.h"
#include "kernels/table.h"
#include "kernels/tile.h"

namespace headlab {

/// u.x for a vector u of the table.
template <class Number, class T>
HEADLAB_HD T dot(const Number* u, const T* x, int d, std::ptrdiff_t stride) {
  T sum(0);
  for (int j = 0; j < d; ++j) sum = math::fused(u[j], x[j * stride], sum);
  return sum;
}

/// Vectors u for which u.x is best found at once: of a tile several, because one chain of dependent
/// operations would leave most of the processor idle.
template <class T>
inline constexpr int dots_together = std::is_arithmetic_v<T> ? 1 : 4;

/// The same for vectors u one after another.
template <int Count, class Number, class T>
HEADLAB_HD void dots(const Number* u, const T* x, int d, std::ptrdiff_t stride, T (&sums)[Count]) {
  for (int i = 0; i < Count; ++i) sums[i] = dot(u + i * d, x, d, stride);
}

/// sum |a|: the largest size of a sum of cosines or bumps with these amplitudes.
inline double sum_of_sizes(const std::vector<double>& amplitudes) {
  double sum = 0;
  for (const double one : amplitudes) sum += std::abs(one);
  return sum;
}

/// Throws unless an array has one element for each of the d coordinates of the design.
inline void require_dimension(const std::string& key, std::size_t size, int d) {
  if (size != static_cast<std::size_t>(d)) {
    throw ParameterError(
        key, "has " + counted(size, "element") + ", the design has dim " + std::to_string(d));
  }
}

}  // namespace headlab
