// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <tuple>
#include <type_traits>

#include "engine/files/available_memory.h"
#include "engine/scenario/law_reader.h"
#include "kernels/cpu/attention_heads.h"
#include "kernels/laws.h"
#include "kernels/parallel_for.h"
#include "tools/python/src/studies.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

/// Multiply-adds that take so short a time that Ctrl-C may wait for them.
constexpr double terms_in_place = 1e9;

/// An array [..., heads, rows, columns] of any strides, whose columns lie side by side.
template <class T>
using Matrices = nb::ndarray<const T, nb::device::cpu>;

/// Where its matrices begin, in the order of the leading axes, the heads' own the last.
template <class T>
class Places {
 public:
  Places() = default;
  explicit Places(const Matrices<T>& array)
      : data_(array.data()),
        rows_(array.shape(array.ndim() - 2)),
        columns_(array.shape(array.ndim() - 1)),
        stride_(static_cast<std::size_t>(array.stride(array.ndim() - 2))),
        begin_{0} {
    for (std::size_t axis = 0; axis + 2 < array.ndim(); ++axis) {
      std::vector<std::int64_t> all;
      for (const std::int64_t before : begin_) {
        for (std::size_t i = 0; i < array.shape(axis); ++i) {
          all.push_back(before + static_cast<std::int64_t>(i) * array.stride(axis));
        }
      }
      begin_ = std::move(all);
    }
  }

  std::size_t count() const { return begin_.size(); }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  bool empty() const { return data_ == nullptr; }
  LaneRows<const T> operator[](std::size_t item) const {
    if (empty()) return {};
    return {data_ + begin_[item], rows_, columns_, stride_};
  }

 private:
  const T* data_ = nullptr;
  std::size_t rows_ = 0, columns_ = 0, stride_ = 0;
  std::vector<std::int64_t> begin_;
};

/// What a call computes with; the arrays are the caller's.
template <class T>
struct HeadsOfCaller {
  AttentionBatch<T> batch = {};
  Places<T> q = {}, k = {}, v = {}, bias = {};
  Places<bool> unseen = {};
  int threads = 1;

  std::size_t heads() const { return batch.sequences * batch.shape.heads; }
  std::size_t groups() const { return batch.sequences * batch.shape.groups; }
  double terms() const {
    const AttentionShape& shape = batch.shape;
    return static_cast<double>(heads() * shape.queries) *
           static_cast<double>(shape.keys * (shape.k + shape.e));
  }
};

/// \param arrays q, k, v, bias and unseen, of the same leading axes; the last three may be None,
/// and
///               without values they are the weights themselves
/// \param rule sequences, softcap, scale, causal, window, leave_own_out, alibi, sink, distances
template <class T>
std::shared_ptr<HeadsOfCaller<T>> heads_of_caller(const nb::tuple& arrays, const nb::dict& rule,
                                                  const OptionalText& threads) {
  const auto call = std::make_shared<HeadsOfCaller<T>>();
  call->q = Places<T>(nb::cast<Matrices<T>>(arrays[0]));
  call->k = Places<T>(nb::cast<Matrices<T>>(arrays[1]));
  if (!arrays[2].is_none()) call->v = Places<T>(nb::cast<Matrices<T>>(arrays[2]));
  if (!arrays[3].is_none()) call->bias = Places<T>(nb::cast<Matrices<T>>(arrays[3]));
  if (!arrays[4].is_none()) call->unseen = Places<bool>(nb::cast<Matrices<bool>>(arrays[4]));
  AttentionBatch<T>& batch = call->batch;
  batch.sequences = nb::cast<std::size_t>(rule["sequences"]);
  batch.shape = {.heads = call->q.count() / batch.sequences,
                 .groups = call->k.count() / batch.sequences,
                 .queries = call->q.rows(),
                 .keys = call->k.rows(),
                 .k = call->q.columns(),
                 .e = call->v.empty() ? call->k.rows() : call->v.columns()};
  batch.rule = {.scale = nb::cast<double>(rule["scale"]),
                .softcap = nb::cast<double>(rule["softcap"]),
                .causal = nb::cast<bool>(rule["causal"]),
                .window = nb::cast<std::size_t>(rule["window"]),
                .leave_own_out = nb::cast<bool>(rule["leave_own_out"]),
                .alibi = nb::cast<std::vector<double>>(rule["alibi"]),
                .sink = nb::cast<std::vector<double>>(rule["sink"])};
  batch.distances = nb::cast<bool>(rule["distances"]);
  batch.head = [own = call.get()](std::size_t b, std::size_t h) {
    const AttentionShape& shape = own->batch.shape;
    const std::size_t item = b * shape.heads + h, group = b * shape.groups + shape.group(h);
    const LaneRows<const bool> unseen = own->unseen[item];
    return AttentionHead<T>{.q = own->q[item],
                            .k = own->k[group],
                            .v = own->v[group],
                            .bias = own->bias[item],
                            .unseen = {reinterpret_cast<const unsigned char*>(unseen.data),
                                       unseen.rows, unseen.columns, unseen.stride}};
  };
  call->threads = thread_count(threads_of(threads));
  return call;
}

template <class T>
struct Values {
  std::shared_ptr<HeadsOfCaller<T>> call;
  std::vector<T> z = {};
  std::vector<double> log_sums = {};

  void operator()(const std::atomic<bool>* stop) {
    attend_heads(call->batch, call->threads, stop, z.data(), log_sums.data());
  }
  nb::object object() {
    return nb::make_tuple(array_object(std::move(z), {z.size()}),
                          array_object(std::move(log_sums), {log_sums.size()}));
  }
};

template <class T>
nb::object attend_arrays(const nb::tuple& arrays, const nb::dict& rule,
                         const OptionalText& threads) {
  const auto call = heads_of_caller<T>(arrays, rule, threads);
  const AttentionShape& shape = call->batch.shape;
  const std::size_t windows = call->heads() * shape.queries;
  require_memory(windows * (shape.e * sizeof(T) + sizeof(double)), "for the values", "queries");
  auto work = std::make_shared<Values<T>>(Values<T>{call});
  work->z.resize(windows * shape.e);
  work->log_sums.resize(windows);
  return here_or_as_job(call->terms() <= terms_in_place, arrays, std::move(work));
}

template <class T>
struct Gradients {
  std::shared_ptr<HeadsOfCaller<T>> call;
  AttentionUpstream<T> upstream = {};
  std::vector<T> q = {}, k = {}, v = {}, bias = {};
  std::vector<double> sink = {}, alibi = {}, softcap = {};

  void operator()(const std::atomic<bool>* stop) {
    const auto pointer = [](auto& of) { return of.empty() ? nullptr : of.data(); };
    const AttentionGradients<T> to{.q = pointer(q),
                                   .k = pointer(k),
                                   .v = pointer(v),
                                   .bias = pointer(bias),
                                   .sink = pointer(sink),
                                   .alibi = pointer(alibi),
                                   .softcap = pointer(softcap)};
    attend_heads_backward(call->batch, upstream, call->threads, stop, to);
  }
  nb::object object() {
    const auto array = [](auto& of) { return array_object(std::move(of), {of.size()}); };
    return nb::make_tuple(array(q), array(k), array(v), array(bias), array(sink), array(alibi),
                          array(softcap));
  }
};

template <class T>
using Contiguous = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

/// \param wanted q, k, v, bias, sink, alibi, softcap
template <class T>
nb::object attend_arrays_backward(const Contiguous<T>& upstream,
                                  const Contiguous<double>& by_log_sums, const nb::tuple& arrays,
                                  const nb::dict& rule, const std::vector<bool>& wanted,
                                  const OptionalText& threads) {
  const auto call = heads_of_caller<T>(arrays, rule, threads);
  const AttentionShape& shape = call->batch.shape;
  const std::size_t windows = call->heads() * shape.queries, keys = call->groups() * shape.keys;
  const auto size = [&](std::size_t which, std::size_t all) { return wanted.at(which) ? all : 0; };
  const std::size_t sizes[] = {size(0, windows * shape.k), size(1, keys * shape.k),
                               size(2, keys * shape.e), size(3, windows * shape.keys)};
  require_memory((sizes[0] + sizes[1] + sizes[2] + sizes[3]) * sizeof(T), "for the gradients",
                 "queries");
  auto work = std::make_shared<Gradients<T>>(
      Gradients<T>{call, AttentionUpstream<T>{upstream.data(), by_log_sums.data()}});
  work->q.resize(sizes[0]);
  work->k.resize(sizes[1]);
  work->v.resize(sizes[2]);
  work->bias.resize(sizes[3]);
  work->sink.resize(size(4, call->heads()));
  work->alibi.resize(size(5, call->heads()));
  work->softcap.resize(size(6, call->heads()));
  return here_or_as_job(3 * call->terms() <= terms_in_place,
                        std::tuple(upstream, by_log_sums, arrays), std::move(work));
}

/// {"law": name, parameter: value} as it was read.
nb::tuple kernel_of(nb::handle kernel) {
  KernelLaw law;
  const Value document = document_of(kernel);
  read_law(document, "kernel", law);
  return std::visit(
      [](const auto& one) {
        using Law = std::decay_t<decltype(one)>;
        double parameter = 0;
        if constexpr (std::is_same_v<Law, GaussianKernel>) parameter = one.bandwidth;
        if constexpr (std::is_same_v<Law, SoftmaxKernel>) parameter = one.temperature;
        return nb::make_tuple(Law::name, parameter);
      },
      law);
}

template <class T>
void bind_attention_of(nb::module_& module, const char* forward, const char* backward) {
  const std::string given = "arrays: tuple[typing.Any, ...], rule: dict[str, typing.Any], ";
  const std::string rest = "threads: str | None) -> typing.Any";
  module.def(forward, &attend_arrays<T>, nb::arg("arrays"), nb::arg("rule"),
             nb::arg("threads").none(),
             nb::sig(("def " + std::string(forward) + "(" + given + rest).c_str()));
  module.def(
      backward, &attend_arrays_backward<T>, nb::arg("upstream"), nb::arg("by_log_sums"),
      nb::arg("arrays"), nb::arg("rule"), nb::arg("wanted"), nb::arg("threads").none(),
      nb::sig(("def " + std::string(backward) + "(upstream: typing.Any, by_log_sums: typing.Any, " +
               given + "wanted: list[bool], " + rest)
                  .c_str()));
}

}  // namespace

void bind_attention(nb::module_& module) {
  bind_attention_of<float>(module, "attend_float32", "attend_backward_float32");
  bind_attention_of<double>(module, "attend_float64", "attend_backward_float64");
  module.def("kernel_of", &kernel_of, nb::arg("kernel"),
             nb::sig("def kernel_of(kernel: dict[str, typing.Any]) -> tuple[str, float]"));
}

}  // namespace headlab::python
