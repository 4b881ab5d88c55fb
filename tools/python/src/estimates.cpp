// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <span>
#include <type_traits>

#include "engine/files/available_memory.h"
#include "engine/scenario/law_reader.h"
#include "kernels/counted.h"
#include "kernels/cpu/worker.h"
#include "kernels/kernel_laws.h"
#include "kernels/parallel_for.h"
#include "tools/python/src/studies.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

template <class T, std::size_t Dimensions>
using Numbers = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

/// Weights that take so short a time that Ctrl-C may wait for them: a tenth of a second or so.
constexpr double weights_in_place = 1 << 28;

/// Estimates for which there is always memory. To ask how much there is takes longer than they do.
constexpr double windows_of_course = 1 << 14;

template <class Array>
auto numbers_of(const Array& array) {
  return std::span(array.data(), array.size());
}

template <class T>
void require_moderate(std::span<const T> numbers, const char* key) {
  std::size_t at = 0;
  if constexpr (std::is_same_v<T, float>) {
    at = first_immoderate(numbers);
  } else {
    while (at < numbers.size() && std::abs(numbers[at]) <= T{max_given}) ++at;  // stops at NaN
  }
  if (at == numbers.size()) return;
  const std::string place = std::to_string(at);
  if (!std::isfinite(numbers[at])) reject(Location{}, key, "number " + place + " is not finite");
  reject(Location{}, key, "number " + place + " is beyond 1e30, too large for float32 sums");
}

int size_of(std::size_t size, const char* what) {
  if (size == 0 || size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    reject(Location{}, what, "has length " + std::to_string(size) + ", needs 1 to 2147483647");
  }
  return static_cast<int>(size);
}

/// What a call needs. The arrays are the caller's.
struct EstimateHeads {
  Plan plan = {};
  GivenPoints points = {};
  int threads = 1;
  std::vector<float> estimates = {};
  std::uint64_t empty = 0;  ///< windows without weight

  void operator()(const std::atomic<bool>* stop) {
    empty = estimate_heads_cpu(plan, points, threads, estimates, stop);
  }
  /// The estimates [H, Q] as an array, and the number of windows without weight.
  nb::object object() {
    return nb::make_tuple(
        array_object(std::move(estimates), {static_cast<std::size_t>(plan.heads),
                                            static_cast<std::size_t>(plan.queries)}),
        empty);
  }
};

/// The estimates, or for long work the job that makes them.
nb::object estimate_heads(const Numbers<float, 2>& x, const Numbers<float, 1>& y,
                          const Numbers<double, 2>& queries, const Numbers<double, 3>& heads,
                          const std::optional<Numbers<double, 3>>& query_heads, nb::handle kernel,
                          const std::optional<std::string>& threads) {
  const std::size_t n = x.shape(0);
  const std::size_t d = x.shape(1);
  const auto reject_shape = [](const char* key, const std::string& problem) {
    reject(Location{}, key, problem);
  };
  if (n == 0) reject_shape("X", "has no rows");
  if (y.size() != n) {
    reject_shape("Y", "has " + counted(y.size(), "number") + ", needs " + std::to_string(n) +
                          ", one for each row of X");
  }
  if (queries.shape(1) != d) {
    reject_shape("queries", "have " + counted(queries.shape(1), "coordinate") + ", X has " +
                                std::to_string(d));
  }
  if (heads.shape(1) != d) {
    reject_shape("heads", "are matrices of " + counted(heads.shape(1), "row") + ", X has " +
                              counted(d, "coordinate"));
  }
  EstimateHeads call{.points = {numbers_of(x), numbers_of(y)},
                     .threads = thread_count(threads_of(threads))};
  Plan& plan = call.plan;
  plan.estimator = Estimator::plain;
  plan.n = n;
  plan.d = size_of(d, "X");
  plan.queries = size_of(queries.shape(0), "queries");
  plan.heads = size_of(heads.shape(0), "heads");
  plan.k = size_of(heads.shape(2), "heads");
  const Value law = document_of(kernel);
  read_law(law, "kernel", plan.kernel.own());
  require_moderate(numbers_of(x), "X");
  require_moderate(numbers_of(y), "Y");
  require_moderate(numbers_of(queries), "queries");
  require_moderate(numbers_of(heads), "heads");
  plan.projections.assign(heads.data(), heads.data() + heads.size());
  plan.query_points.assign(queries.data(), queries.data() + queries.size());
  if (query_heads) {
    if (!is_softmax(plan)) {
      reject_shape("query_heads", "are for the softmax kernel; others measure distances");
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (query_heads->shape(i) != heads.shape(i)) {
        reject_shape("query_heads", "need the shape of heads");
      }
    }
    require_moderate(numbers_of(*query_heads), "query_heads");
    plan.query_projections.assign(query_heads->data(), query_heads->data() + query_heads->size());
  }
  plan.head_weights.assign(heads.shape(0), 1.0);
  const double windows = static_cast<double>(plan.heads) * static_cast<double>(plan.queries);
  if (windows > windows_of_course) {
    require_memory(static_cast<std::uint64_t>(40 * windows), "for the estimates", "queries");
  }
  call.estimates.resize(static_cast<std::size_t>(windows));
  return here_or_as_job(windows * static_cast<double>(n) <= weights_in_place, std::pair(x, y),
                        std::make_shared<EstimateHeads>(std::move(call)));
}

}  // namespace

void bind_estimates(nb::module_& module) {
  module.def("estimate_heads", &estimate_heads, nb::arg("x"), nb::arg("y"), nb::arg("queries"),
             nb::arg("heads"), nb::arg("query_heads").none(), nb::arg("kernel"),
             nb::arg("threads").none(),
             nb::sig("def estimate_heads(x: typing.Any, y: typing.Any, queries: typing.Any, heads: "
                     "typing.Any, query_heads: typing.Any | None, kernel: dict[str, typing.Any], "
                     "threads: str | None) -> typing.Any"));
}

}  // namespace headlab::python
