// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/pair_sums.h"

#include "kernels/statistics/stopping.h"

namespace headlab {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

JointLaw::JointLaw(Index rows, Index columns, const ResponseMoments& response)
    : probability(MatrixXd::Zero(rows, columns)) {
  if (response.has_mean()) mean = MatrixXd::Zero(rows, columns);
  if (!response.is_constant()) square = MatrixXd::Zero(rows, columns);
}

void JointLaw::set(Index i, Index j, double p, const VectorXd& z, const ResponseMoments& response) {
  probability(i, j) = p;
  if (response.is_constant()) return;
  const FunctionMoments moments = p > 1e-40 ? response(z) : FunctionMoments{};
  if (response.has_mean()) mean(i, j) = p * moments.mean;
  square(i, j) = p * moments.mean_square;
}

GivenFirst JointLaw::given_first(const KernelTable& table, const ResponseMoments& response) const {
  GivenFirst given;
  stop_point();
  given.fall = probability * table.fall;
  stop_point();
  given.first = probability * table.first;
  stop_point();
  if (response.has_mean()) {
    given.mean = mean.rowwise().sum();
    given.mean_rest = -mean * table.fall;
    given.mean_rest.colwise() += given.mean;
    stop_point();
    given.mean_first = mean * table.first;
  }
  if (response.is_constant()) {
    given.constant_square = response.constant_square();
  } else {
    given.square_first = square * table.first;
  }
  return given;
}

LevelPairSums::LevelPairSums(Index s, Index t) {
  for (VectorXd* sum : {&fall_u_, &first_u_, &mean_first_u_}) *sum = VectorXd::Zero(s);
  for (VectorXd* sum : {&fall_v_, &first_v_, &mean_first_v_}) *sum = VectorXd::Zero(t);
  for (MatrixXd* sum : {&fall_fall_, &first_fall_, &fall_first_, &first_first_, &mean_first_rest_,
                        &mean_rest_first_, &square_}) {
    *sum = MatrixXd::Zero(s, t);
  }
}

void LevelPairSums::add(const KernelTable& table, const VectorXd& probability,
                        const GivenFirst& given) {
  fall_u_ += table.fall.transpose() * probability;
  first_u_ += table.first.transpose() * probability;
  fall_v_ += given.fall.colwise().sum();
  first_v_ += given.first.colwise().sum();
  fall_fall_.noalias() += table.fall.transpose() * given.fall;
  stop_point();  // each product may take a second
  first_fall_.noalias() += table.first.transpose() * given.fall;
  stop_point();
  fall_first_.noalias() += table.fall.transpose() * given.first;
  stop_point();
  const MatrixXd both = table.first.transpose() * given.first;
  first_first_ += both;
  if (given.mean.size() > 0) {
    mean_first_u_ += table.first.transpose() * given.mean;
    mean_first_v_ += given.mean_first.colwise().sum();
    stop_point();
    mean_first_rest_.noalias() += table.first.transpose() * given.mean_rest;
    stop_point();
    mean_rest_first_ -= table.fall.transpose() * given.mean_first;
    mean_rest_first_.rowwise() += given.mean_first.colwise().sum();
  }
  if (given.square_first.size() == 0) {
    square_ += given.constant_square * both;
  } else {
    square_.noalias() += table.first.transpose() * given.square_first;
  }
}

PairMoments LevelPairSums::integrate(const PairTokens& tokens, const ArrayXd& sigma_weights,
                                     const ArrayXd& tau_weights) const {
  const auto rows = fall_fall_.rows();
  const auto columns = fall_fall_.cols();
  const auto across = [&](const VectorXd& of_sigma) -> ArrayXXd {
    return of_sigma.replicate(1, columns).array();
  };
  const auto down = [&](const VectorXd& of_tau) -> ArrayXXd {
    return of_tau.transpose().replicate(rows, 1).array();
  };
  const ArrayXXd fall = across(fall_u_) + down(fall_v_) - fall_fall_.array();
  const double both = tokens.both;
  const double first = tokens.first;
  const double second = tokens.second;
  // The integral of a function of one or two tokens, with phi of the others.
  const auto total = [&](const ArrayXXd& integrand, int from_both, int from_first,
                         int from_second) -> double {
    ArrayXXd others = power_of_phi(fall, both - from_both);
    if (first > 0)
      others *= power_of_phi(fall_u_.array(), first - from_first).replicate(1, columns);
    if (second > 0) {
      others *= power_of_phi(fall_v_.transpose().array(), second - from_second).replicate(rows, 1);
    }
    return sigma_weights.matrix().dot((integrand * others).matrix() * tau_weights.matrix());
  };
  PairMoments moments = {.product = both * total(square_.array(), 1, 0, 0),
                         .normalisation_error = both * total(first_first_.array(), 1, 0, 0) - 1};
  // Two tokens, the first head's response and the second's: which of the heads see them.
  const auto add = [&](double pairs, const auto& mean_h, const auto& mean_l, const auto& one_h,
                       const auto& one_l, int from_both, int from_first, int from_second) {
    if (pairs <= 0) return;
    moments.product += pairs * total(mean_h * mean_l, from_both, from_first, from_second);
    moments.normalisation_error += pairs * total(one_h * one_l, from_both, from_first, from_second);
  };
  const ArrayXXd first_rest = across(first_u_) - first_fall_.array();
  const ArrayXXd rest_first = down(first_v_) - fall_first_.array();
  add(both * (both - 1), mean_first_rest_.array(), mean_rest_first_.array(), first_rest, rest_first,
      2, 0, 0);
  if (second > 0) {
    add(both * second, mean_first_rest_.array(), down(mean_first_v_), first_rest, down(first_v_), 1,
        0, 1);
  }
  if (first > 0) {
    add(first * both, across(mean_first_u_), mean_rest_first_.array(), across(first_u_), rest_first,
        1, 1, 0);
  }
  add(first * second, across(mean_first_u_), down(mean_first_v_), across(first_u_), down(first_v_),
      0, 1, 1);
  return moments;
}

}  // namespace headlab
