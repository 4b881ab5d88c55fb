// SPDX-License-Identifier: Apache-2.0
/// \file Means over directions in k dimensions, by zonal harmonics.
///
/// With nu = k/2 - 1, P_j the Legendre polynomials of k dimensions (P_j(1) = 1) and d_j the number
/// of harmonics of degree j, the theorem of Funk and Hecke gives for unit vectors w, e
///
///     exp(z w.e) = sum_j d_j a_j(z) P_j(w.e),   a_j(z) = Gamma(nu+1) (2/z)^nu I_{nu+j}(z)
///     exp(i x w.e) = sum_j d_j i^j c_j(x) P_j(w.e),   c_j(x) = Gamma(nu+1) (2/x)^nu J_{nu+j}(x)
///
/// and P_i, P_j average over w to P_j/d_j or 0 (Dai and Xu, Approximation Theory and Harmonic
/// Analysis on Spheres and Balls, 2013, section 1.2). k = 1 is the sphere of two points: a_0 =
/// cosh, a_1 = sinh, and nothing above.
#pragma once

#include <Eigen/Core>

namespace headlab {

/// a_j(z) without overflow.
struct ZonalFactors {
  double log_scaled;      ///< log(exp(-z) a_0(z))
  Eigen::ArrayXd ratios;  ///< [degrees] a_{j+1}(z)/a_j(z), in [0, 1)
};
/// \param k,degrees >= 1
/// \param z >= 0
ZonalFactors zonal_factors(int k, int degrees, double z);

/// d_{j+1}/d_j, [degrees].
Eigen::ArrayXd harmonic_ratios(int k, int degrees);

/// sqrt(d_j) c_j(x), [degrees]; each is within 1 in size.
Eigen::ArrayXd zonal_waves(int k, int degrees, double x);

/// Density of |U - q| at r > 0, U ~ N(0, I) in k dimensions: noncentral chi,
/// r^(k-1) exp(-(r^2 + q^2)/2) a_0(rq) 2^(1-k/2)/Gamma(k/2).
/// \param q length of the vector, >= 0
double noncentral_chi_density(int k, double q, double r);

/// An isotropic correlation of a random function at two points a vector u apart.
struct Correlation {
  enum class Kind {
    gaussian,  ///< exp(-|u|^2/(2 scale^2))
    wave       ///< mean over directions e of cos(scale e.u)
  };
  Kind kind = Kind::gaussian;
  double scale = 1;

  /// At each of `distance`, in k dimensions.
  Eigen::ArrayXd operator()(int k, const Eigen::ArrayXd& distance) const;
  /// Mean over two points drawn from N(0, I) in k dimensions.
  double mean(int k) const;
};

/// E[correlation of U_1 - U_2 | |U_1 - q| = r_a, |U_2 - q| = r_b] for each two of `radius`, U_1 and
/// U_2 independent N(0, I) in k dimensions, [radius][radius]. The two angular means leave
///     exp(-(r_a^2 + r_b^2)/(2 l^2)) sum_j d_j a_j(r_a r_b/l^2) g_j(r_a) g_j(r_b)   (gaussian)
///     sum_j d_j c_j(f r_a) c_j(f r_b) g_j(r_a) g_j(r_b)                            (wave)
/// with g_j(r) = a_j(rq)/a_0(rq): every term of the first is positive.
/// \param q length of the vector, >= 0
Eigen::MatrixXd conditional_correlation(const Correlation& correlation, int k, double q,
                                        const Eigen::ArrayXd& radius);

}  // namespace headlab
