// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/projected_head.h"

#include <iterator>
#include <limits>

#include "kernels/decompositions.h"

namespace headlab {

int add_projected_head(HeadLayer& layer, const Eigen::MatrixXd& w_q, const Eigen::MatrixXd& w_k,
                       bool rotary) {
  const Eigen::Index k = w_k.cols();
  const Eigen::MatrixXd r_key = HouseholderQr(w_k).upper();
  const Eigen::VectorXd s = singular_values(r_key);
  const double rounding =
      static_cast<double>(w_k.rows()) * std::numeric_limits<double>::epsilon() * s(0);
  const auto rank = static_cast<int>((s.array() > rounding).count());
  if (rank < k) return rank;
  layer.w_q.push_back(w_q);
  layer.w_k.push_back(w_k);
  layer.condition_numbers.push_back(s(0) / s(k - 1));
  layer.subspaces.push_back(signed_qr(w_k).q);
  if (rotary) return rank;
  // W_Q W_K^T = Q_Q (R_Q R_K^T) Q_K^T, so the large product is never formed.
  const HouseholderQr query(w_q);
  const LeftSvd product = left_svd(query.upper() * r_key.transpose());
  layer.singular_values.push_back(product.values);
  Eigen::MatrixXd u = Eigen::MatrixXd::Zero(w_k.rows(), k);
  u.topRows(k) = product.u;
  layer.query_subspaces.push_back(query.q_times(u));
  return rank;
}

void append_heads(HeadLayer& layer, HeadLayer&& more) {
  const auto take = [&](auto HeadLayer::*member) {
    auto& from = more.*member;
    (layer.*member)
        .insert((layer.*member).end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
  };
  take(&HeadLayer::subspaces);
  take(&HeadLayer::w_q);
  take(&HeadLayer::w_k);
  take(&HeadLayer::query_subspaces);
  take(&HeadLayer::singular_values);
  take(&HeadLayer::condition_numbers);
}

}  // namespace headlab
