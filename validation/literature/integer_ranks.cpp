// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/integer_ranks.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Integer = boost::multiprecision::cpp_int;
using IntegerRows = std::vector<std::vector<Integer>>;

void require_integers(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("integer ranks: ") + message);
}

IntegerRows rows_of(const IntegerMatrix& a) {
  IntegerRows rows(static_cast<std::size_t>(a.rows()));
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    for (Eigen::Index j = 0; j < a.cols(); ++j)
      rows[static_cast<std::size_t>(i)].emplace_back(a(i, j));
  }
  return rows;
}

/// Bareiss's elimination: every element stays a minor of the matrix, so divisions have no rest.
int rank_of(IntegerRows a) {
  if (a.empty()) return 0;
  std::size_t rank = 0;
  Integer last = 1;
  for (std::size_t column = 0; column < a[0].size() && rank < a.size(); ++column) {
    std::size_t pivot = rank;
    while (pivot < a.size() && a[pivot][column] == 0) ++pivot;
    if (pivot == a.size()) continue;
    std::swap(a[pivot], a[rank]);
    const Integer head = a[rank][column];
    for (std::size_t i = rank + 1; i < a.size(); ++i) {
      const Integer factor = a[i][column];
      for (std::size_t j = column; j < a[i].size(); ++j) {
        a[i][j] = (a[i][j] * head - factor * a[rank][j]) / last;
      }
    }
    last = head;
    ++rank;
  }
  return static_cast<int>(rank);
}

/// n C X: rows less their mean, times n.
IntegerRows centred_rows(IntegerRows a) {
  if (a.empty()) return a;
  std::vector<Integer> sum(a[0].size());
  for (const auto& row : a) {
    for (std::size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
  }
  const std::size_t n = a.size();
  for (auto& row : a) {
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] * n - sum[j];
  }
  return a;
}

/// d X P_d: elements less the mean of their row, times d.
IntegerRows feature_centred_rows(IntegerRows a) {
  for (auto& row : a) {
    Integer sum = 0;
    for (const Integer& x : row) sum += x;
    for (Integer& x : row) x = x * row.size() - sum;
  }
  return a;
}

/// Whether the vector of the roots of `squares`, all positive, is in the column span of `a`.
bool spans_roots(const IntegerRows& a, const std::vector<Integer>& squares, int rank) {
  IntegerRows extended = a;
  std::vector<Integer> classes;  // one of each class of numbers whose products are squares
  std::vector<std::pair<std::size_t, Integer>> parts;
  for (const Integer& square : squares) {
    std::size_t k = 0;
    Integer root;
    for (; k < classes.size(); ++k) {
      const Integer product = square * classes[k];
      root = sqrt(product);
      if (root * root == product) break;
    }
    if (k == classes.size()) {
      classes.push_back(square);
      root = square;
    }
    // The root of `square` is root/classes[k] times that of classes[k].
    parts.emplace_back(k, root);
  }
  for (std::size_t i = 0; i < extended.size(); ++i) {
    for (std::size_t k = 0; k < classes.size(); ++k) {
      extended[i].push_back(parts[i].first == k ? parts[i].second : Integer(0));
    }
  }
  return rank_of(extended) == rank;
}

/// a b, where the sums are sure to fit.
IntegerMatrix checked_product(const IntegerMatrix& a, const IntegerMatrix& b) {
  const Eigen::MatrixXd size = a.cast<double>().cwiseAbs() * b.cast<double>().cwiseAbs();
  require_integers(size.size() == 0 || size.maxCoeff() < 0x1p61, "numbers are too large");
  return a * b;
}

}  // namespace

int exact_rank(const IntegerMatrix& a) {
  return rank_of(rows_of(a));
}

int dimensions_outside_span(const IntegerMatrix& tokens, const IntegerMatrix& image) {
  require_integers(tokens.cols() == image.cols(), "tokens differ in dimension");
  IntegerRows both = rows_of(tokens);
  for (auto& row : rows_of(image)) both.push_back(row);
  return rank_of(both) - exact_rank(tokens);
}

NormedRanks normed_ranks(const IntegerMatrix& tokens, NormKind norm, ExactEpsilon epsilon) {
  require_integers(tokens.rows() >= 1 && tokens.cols() >= 1, "there must be a token");
  require_integers(norm != NormKind::none, "there must be a norm");
  require_integers(epsilon.numerator >= 0 && epsilon.denominator >= 1,
                   "epsilon must not be negative");
  const IntegerRows x = rows_of(tokens);
  const Integer d = tokens.cols();
  const bool is_layer = norm == NormKind::layer;
  const IntegerRows y = is_layer ? feature_centred_rows(x) : x;

  // sigma_i^2 times d^3 (layer, whose y has d in it) or d (rms), and times epsilon's denominator.
  const Integer scale = is_layer ? Integer(d * d * d) : d;
  std::vector<Integer> squares;
  bool has_zero = false;
  for (const auto& row : y) {
    Integer square = 0;
    for (const Integer& element : row) square += element * element;
    square = square * epsilon.denominator + scale * epsilon.numerator;
    has_zero |= square == 0;
    squares.push_back(square);
  }

  // With a token of 0 among the normed ones, 1 is in no column span.
  const int rank = rank_of(y);
  const bool loses_one = !has_zero && spans_roots(y, squares, rank);
  return {.before = rank_of(centred_rows(x)), .after = rank - (loses_one ? 1 : 0)};
}

IntegerMatrix integer_mlp(const IntegerMatrix& tokens, const IntegerMatrix& input,
                          const Eigen::Matrix<std::int64_t, 1, Eigen::Dynamic>& bias,
                          const IntegerMatrix& output) {
  require_integers(tokens.cols() == input.rows() && input.cols() == bias.cols() &&
                       input.cols() == output.rows() && output.cols() == tokens.cols(),
                   "shapes of the MLP differ");
  require_integers(bias.size() == 0 || bias.cast<double>().cwiseAbs().maxCoeff() < 0x1p61,
                   "numbers are too large");
  const IntegerMatrix units = (checked_product(tokens, input).rowwise() + bias).cwiseMax(0);
  return tokens + checked_product(units, output);
}

}  // namespace headlab
