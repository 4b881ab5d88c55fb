// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/stack_examples.h"

#include "kernels/stack/maps.h"

namespace headlab {

Plan faulty_plan(const Experiment& experiment, std::size_t condition) {
  Plan plan = experiment.plan(condition);
  experiment.add_fault(plan);
  return plan;
}

Eigen::MatrixXd query_key_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                              Eigen::Index d) {
  LayerMaps maps;
  draw_maps(stack, draws, layer, {.first = head}, {.first = head}, d, maps);
  const Eigen::MatrixXd map = stack.temperature * maps.query;
  return maps.key.size() == 0 ? map : Eigen::MatrixXd(map * maps.key.transpose());
}

Eigen::MatrixXd value_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                          Eigen::Index d) {
  LayerMaps maps;
  draw_maps(stack, draws, layer, {.first = head, .count = 0}, {.first = head}, d, maps);
  return maps.value.size() == 0 ? Eigen::MatrixXd(maps.output)
                                : Eigen::MatrixXd(maps.value * maps.output);
}

IntegerMatrix thousandths(const Eigen::MatrixXd& matrix) {
  return (1000 * matrix).array().round().matrix().cast<std::int64_t>();
}

Jackknifed jackknifed(const std::vector<double>& values,
                      const std::function<double(std::vector<double>)>& statistic) {
  Jackknifed out(statistic(values));
  const auto size = static_cast<std::ptrdiff_t>(values.size() / sample_parts);
  for (std::size_t part = 0; part < sample_parts; ++part) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(part) * size;
    std::vector<double> rest(values.begin(), from);
    rest.insert(rest.end(), from + size, values.end());
    out.leave_one_out.push_back(statistic(std::move(rest)));
  }
  return out;
}

std::vector<double> part_counts(std::size_t values) {
  return std::vector<double>(sample_parts, static_cast<double>(values / sample_parts));
}

}  // namespace headlab
