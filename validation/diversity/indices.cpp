// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/indices.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include <Eigen/Core>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

constexpr double orthonormal_tolerance = 1e-8;

[[noreturn]] void reject(const std::string& problem) {
  throw std::invalid_argument(problem);
}

/// The scale on which squared sines count, as its root, so that no square under- or overflows.
double require_scale(const char* name, double value) {
  if (value >= 1e-100 && value <= 1e100) return value;
  std::ostringstream text;
  text << name << " is " << value << " (allowed: 1e-100 to 1e100)";
  reject(text.str());
}

/// gamma with rho = prod_j (1 + sin^2 t_j / gamma^2)^(-1/2): gamma^2 = b^2 (2 + b^2).
double gaussian_scale(double bandwidth) {
  require_scale("bandwidth", bandwidth);
  return bandwidth * std::hypot(bandwidth, std::sqrt(2.0));
}

/// sum_j log(1 + sin^2 t_j / gamma^2). (1 - c)(1 + c) keeps the sine of a small angle.
double log_spread(const std::vector<double>& cosines, double gamma) {
  if (cosines.empty()) reject("no principal cosines (k >= 1 are needed)");
  double sum = 0;
  for (double c : cosines) {
    if (!(c >= 0 && c <= 1)) {
      std::ostringstream text;
      text << "principal cosine is " << c << " (allowed: 0 to 1)";
      reject(text.str());
    }
    const double sine = std::sqrt((1 - c) * (1 + c));
    sum += std::log1p((sine / gamma) * (sine / gamma));
  }
  return sum;
}

/// Checked subspaces side by side: W_1 ... W_H as one matrix [d][H k].
class Frames {
 public:
  explicit Frames(const Matrices& subspaces) {
    if (subspaces.empty()) reject("no subspaces (H >= 1 are needed)");
    d_ = subspaces[0].rows(), k_ = subspaces[0].cols();
    heads_ = static_cast<Eigen::Index>(subspaces.size());
    if (k_ < 1 || k_ > d_) reject("subspace 0 is " + shape(d_, k_) + " (allowed: 1 <= k <= d)");
    stack_.resize(d_, heads_ * k_);
    for (Eigen::Index h = 0; h < heads_; ++h) {
      const MatrixXd& w = subspaces[static_cast<std::size_t>(h)];
      if (w.rows() != d_ || w.cols() != k_) {
        reject("subspace " + std::to_string(h) + " is " + shape(w.rows(), w.cols()) +
               " but subspace 0 is " + shape(d_, k_));
      }
      const MatrixXd excess = w.transpose() * w - MatrixXd::Identity(k_, k_);
      // all() over "<=" rather than a maximum, which may lose a NaN.
      if (!(excess.array().abs() <= orthonormal_tolerance).all()) {
        std::ostringstream text;
        text << "columns of subspace " << h
             << " are not orthonormal (allowed: |W^T W - I| <= " << orthonormal_tolerance
             << ") - orthonormalise by QR";
        reject(text.str());
      }
      // Newton step towards the nearest orthonormal frame: same span, deviation 1e-8 -> 1e-16.
      stack_.middleCols(h * k_, k_) = w - 0.5 * w * excess;
    }
  }

  Eigen::Index d() const { return d_; }
  Eigen::Index k() const { return k_; }
  Eigen::Index heads() const { return heads_; }
  /// Dimensions the heads can cover at most: the number of eigenvalues of Pbar that may be
  /// positive.
  Eigen::Index reach() const { return std::min(heads_ * k_, d_); }
  auto frame(Eigen::Index h) const { return stack_.middleCols(h * k_, k_); }

  /// The smaller of Pbar = W W^T / H [d][d] and W^T W / H [H k][H k] for the stacked W, which share
  /// their positive eigenvalues. Lower triangle; the upper one is zero.
  MatrixXd moment() const {
    MatrixXd result = MatrixXd::Zero(reach(), reach());
    const double weight = 1.0 / static_cast<double>(heads_);
    auto lower = result.selfadjointView<Eigen::Lower>();
    if (d_ < heads_ * k_) {
      lower.rankUpdate(stack_, weight);
    } else {
      lower.rankUpdate(stack_.transpose(), weight);
    }
    return result;
  }

  /// Frames l+1 .. H-1 against frame l: [k][(H - 1 - l) k], one product instead of one a pair.
  MatrixXd products(Eigen::Index l) const {
    return frame(l).transpose() * stack_.rightCols((heads_ - 1 - l) * k_);
  }

 private:
  static std::string shape(Eigen::Index rows, Eigen::Index columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
  }
  Eigen::Index d_ = 0, k_ = 0, heads_ = 0;
  MatrixXd stack_;
};

/// log det(I + S / gamma^2) = sum_j log(1 + sin^2 t_j / gamma^2) for one pair, without its angles;
/// S = (b - a a^T b)^T (b - a a^T b) = I - m^T m has the squared sines as eigenvalues.
/// \param a,b [d][k] orthonormal  \param m a^T b [k][k]
template <class Frame, class Product>
double log_spread(const Frame& a, const Frame& b, const Product& m, double gamma) {
  const Eigen::Index k = m.rows();
  const MatrixXd identity = MatrixXd::Identity(k, k);
  if (gamma * gamma >= 1e-3 * static_cast<double>(k)) {
    // I - m^T m carries an error of eps, the result k eps / gamma^2: here at most 2e-13.
    const MatrixXd s = identity - m.transpose() * m;
    return Cholesky(identity + s / (gamma * gamma)).log_determinant();
  }
  // Narrow windows see small sines, which cancel in I - m^T m; the residual holds them to eps, and
  // the QR factor of (residual / gamma over I) squares nothing: error k eps / gamma.
  MatrixXd tall(a.rows() + k, k);
  tall << (b - a * m) / gamma, identity;
  return 2 * HouseholderQr(tall).upper().diagonal().array().abs().log().sum();
}

Index chordal(const Frames& frames, const MatrixXd& moment) {
  if (frames.heads() == 1) return {"chordal", {}, {}};
  const double k = static_cast<double>(frames.k()), heads = static_cast<double>(frames.heads());
  const double upper_bound = heads / (heads - 1) * (1 - k / static_cast<double>(frames.reach()));
  const double trace = 2 * moment.squaredNorm() - moment.diagonal().squaredNorm();
  return {"chordal", std::clamp(heads / (heads - 1) * (1 - trace / k), 0.0, upper_bound),
          upper_bound};
}

Index spectral(const Frames& frames, const MatrixXd& moment) {
  if (frames.reach() == frames.k()) return {"spectral", {}, {}};
  const SymmetricEigen eigen = symmetric_eigenvalues(moment);
  if (!eigen.converged) throw std::runtime_error("eigenvalues did not converge");
  const double k = static_cast<double>(frames.k());
  double entropy = 0;
  for (double eigenvalue : eigen.values) {
    const double p = eigenvalue / k;
    if (p > 0) entropy -= p * std::log(p);  // p log p -> 0; rounding may leave -eps for a zero
  }
  const double room = static_cast<double>(frames.reach()) - k;
  return {"spectral", std::clamp((std::exp(entropy) - k) / room, 0.0, 1.0), 1.0};
}

/// The index whose terms over pairs add up to `sum`.
Index mean_over_pairs(const char* name, const Frames& frames, double sum, double gamma,
                      double power) {
  const double heads = static_cast<double>(frames.heads());
  const double right_angles = static_cast<double>(frames.k()) * std::log1p(1 / (gamma * gamma));
  const double upper_bound = -std::expm1(-power * right_angles);
  return {name, std::clamp(sum / (0.5 * heads * (heads - 1)), 0.0, upper_bound), upper_bound};
}

/// 1 - mean over pairs of prod_j (1 + sin^2 t_j / gamma^2)^(-power).
Index pair_index(const char* name, const Frames& frames, double gamma, double power) {
  if (frames.heads() == 1) return {name, {}, {}};
  const Eigen::Index heads = frames.heads(), k = frames.k();
  double sum = 0;
  for (Eigen::Index l = 0; l + 1 < heads; ++l) {
    const MatrixXd products = frames.products(l);
    for (Eigen::Index h = l + 1; h < heads; ++h) {
      const auto m = products.middleCols((h - l - 1) * k, k);
      sum -= std::expm1(-power * log_spread(frames.frame(l), frames.frame(h), m, gamma));
    }
  }
  return mean_over_pairs(name, frames, sum, gamma, power);
}

constexpr double gaussian_power = 0.5, softmax_power = 1.0;

}  // namespace

std::vector<double> principal_cosines(const MatrixXd& a, const MatrixXd& b) {
  const Frames frames({a, b});
  return principal_cosines(MatrixXd(frames.products(0)));
}

std::vector<double> principal_cosines(const MatrixXd& product) {
  const Eigen::VectorXd values = singular_values(product);
  std::vector<double> cosines(values.begin(), values.end());
  for (double& c : cosines) c = std::clamp(c, 0.0, 1.0);
  return cosines;
}

double overlap(const std::vector<double>& cosines, double bandwidth) {
  return std::exp(-gaussian_power * log_spread(cosines, gaussian_scale(bandwidth)));
}

Index chordal_index(const Matrices& subspaces) {
  const Frames frames(subspaces);
  return chordal(frames, frames.moment());
}

std::vector<Index> subspace_indices(const Matrices& subspaces,
                                    std::optional<double> gaussian_bandwidth,
                                    std::optional<double> softmax_temperature) {
  // One head has nothing to differ from; what follows costs d^2 k.
  if (subspaces.size() == 1)
    return {{"chordal", {}, {}}, {"spectral", {}, {}}, {"overlap", {}, {}}, {"qk", {}, {}}};
  const Frames frames(subspaces);
  const MatrixXd moment = frames.moment();
  std::vector<Index> indices{
      chordal(frames, moment), spectral(frames, moment), {"overlap", {}, {}}, {"qk", {}, {}}};
  if (gaussian_bandwidth) {
    indices[2] = pair_index("overlap", frames, gaussian_scale(*gaussian_bandwidth), gaussian_power);
  }
  if (softmax_temperature) {
    const double scale = require_scale("temperature", *softmax_temperature);
    indices[3] = pair_index("qk", frames, scale, softmax_power);
  }
  return indices;
}

SubspacePairs subspace_pairs(const Matrices& subspaces, double gaussian_bandwidth) {
  const double gamma = gaussian_scale(gaussian_bandwidth);
  if (subspaces.size() == 1) {
    return {{{"chordal", {}, {}}, {"spectral", {}, {}}, {"overlap", {}, {}}}, {}};
  }
  const Frames frames(subspaces);
  const Eigen::Index heads = frames.heads(), k = frames.k();
  // W^T W / H is the smaller moment where H k <= d, and its blocks are the products.
  const bool from_products = heads * k <= frames.d();
  MatrixXd moment;
  if (from_products) {
    moment = MatrixXd::Identity(heads * k, heads * k) / static_cast<double>(heads);
  } else {
    moment = frames.moment();
  }
  SubspacePairs out;
  double sum = 0;
  for (Eigen::Index l = 0; l + 1 < heads; ++l) {
    const MatrixXd products = frames.products(l);
    for (Eigen::Index h = l + 1; h < heads; ++h) {
      const MatrixXd& m = out.products.emplace_back(products.middleCols((h - l - 1) * k, k));
      sum -= std::expm1(-gaussian_power * log_spread(frames.frame(l), frames.frame(h), m, gamma));
      if (from_products) {
        moment.block(h * k, l * k, k, k) = m.transpose() / static_cast<double>(heads);
      }
    }
  }
  out.indices = {chordal(frames, moment), spectral(frames, moment),
                 mean_over_pairs("overlap", frames, sum, gamma, gaussian_power)};
  return out;
}

GroupShares group_shares(int d, int k, int heads, int groups) {
  if (k < 1 || k > d || heads < 2 || groups < 1 || heads % groups != 0) {
    reject("d, k, heads, groups are " + std::to_string(d) + ", " + std::to_string(k) + ", " +
           std::to_string(heads) + ", " + std::to_string(groups) +
           " (allowed: 1 <= k <= d, heads >= 2, groups that divide heads)");
  }
  const double h = heads, members = h / groups;
  const auto room = [&](int subspaces) { return std::min(double(subspaces) * k, double(d)) - k; };
  return {.pairs = (h - members) / (h - 1),
          .spectral = room(heads) > 0 ? room(groups) / room(heads) : 1};
}

double output_index_upper_bound(int heads) {
  if (heads < 2) reject("heads is " + std::to_string(heads) + " (allowed: 2 or more)");
  return static_cast<double>(heads) / static_cast<double>(heads - 1);
}

HaarNull haar_null(int d, int k, int heads) {
  if (k < 1 || k > d || heads < 2) {
    reject("d, k, heads are " + std::to_string(d) + ", " + std::to_string(k) + ", " +
           std::to_string(heads) + " (allowed: 1 <= k <= d, heads >= 2)");
  }
  if (k == d) return {0, 0};  // one subspace there is; at d = 1 the formula would read 0/0
  const double big = d, free = d - k, pairs = 0.5 * heads * (heads - 1.0);
  return {free / big, free / big * std::sqrt(2 / ((big - 1) * (big + 2) * pairs))};
}

}  // namespace headlab
