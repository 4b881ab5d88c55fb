// SPDX-License-Identifier: Apache-2.0
#include "tools/report/formula_text.h"

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

TEST(FormulaText, SetsScriptsAndRoots) {
  EXPECT_EQ(formula_html("b^2 = t"), "b<sup>2</sup> = t");
  EXPECT_EQ(formula_html("at sqrt(d_k)"), "at √(<i>d</i><sub><i>k</i></sub>)");
  EXPECT_EQ(formula_html("W_O, C_hl"), "<i>W</i><sub><i>O</i></sub>, <i>C</i><sub><i>hl</i></sub>");
  EXPECT_EQ(formula_html("D_0^2 < 1"), "<i>D</i><sub>0</sub><sup>2</sup> &lt; 1");
  EXPECT_EQ(formula_html("D_(l-1)"), "<i>D</i><sub>l−1</sub>");
  EXPECT_EQ(formula_html("n^(-1/4)"), "n<sup>−1/4</sup>");
  EXPECT_EQ(formula_html("e^-u, M^-1, R^d."), "e<sup>−u</sup>, M<sup>−1</sup>, R<sup>d</sup>.");
  EXPECT_EQ(formula_html("n^0.20"), "n<sup>0.20</sup>");
  EXPECT_EQ(formula_html("(c^(1/2) D_0)^(3^L)"),
            "(c<sup>1/2</sup> <i>D</i><sub>0</sub>)<sup>3<sup>L</sup></sup>");
  EXPECT_EQ(formula_html("sigma_c/sigma"), "<i>σ</i><sub><i>c</i></sub>/<i>σ</i>");
  EXPECT_EQ(formula_html("n <= d"), "n ≤ d");
  EXPECT_EQ(formula_html("n C / s2, s2/n"), "n C / s<sup>2</sup>, s<sup>2</sup>/n");
  EXPECT_EQ(formula_html("is s2 over n V/s2."), "is s<sup>2</sup> over n V/s<sup>2</sup>.");
  EXPECT_EQ(formula_html("int e^-u"), "∫ e<sup>−u</sup>");
  EXPECT_EQ(formula_html("n_eff"), "<i>n</i><sub><i>eff</i></sub>");
  EXPECT_EQ(formula_html("rho V, beta q, log(2/eps)"), "<i>ρ</i> V, <i>β</i> q, log(2/<i>ε</i>)");
  EXPECT_EQ(formula_html("eps = 0.01"), "<i>ε</i> = 0.01");
}

TEST(FormulaText, HasTheSignsOfPrint) {
  EXPECT_EQ(with_signs("n <= d, m >= sqrt(d_k)"), "n ≤ d, m ≥ √(d_k)");
  EXPECT_EQ(with_signs("(1 - 1/H) C - 1/n, (N-1)"), "(1 − 1/H) C − 1/n, (N−1)");
  EXPECT_EQ(with_signs("bias -m(x), exp(-u), [-0.4], from -1"),
            "bias −m(x), exp(−u), [−0.4], from −1");
  EXPECT_EQ(with_signs("[-1.5,-2], a,-b"), "[−1.5,−2], a,-b");
  EXPECT_EQ(with_signs("2 w - (a - b)(1 - omega)"), "2 w − (a − b)(1 − omega)");
  for (const char* plain : {"100 (few) - or more", "one - two", "GPT-2", "sha-256", "single-index",
                            "X-ray", "DM-QPMNet (arXiv:2511.00218)", "run-1.toml", "s2.toml"}) {
    EXPECT_EQ(with_signs(plain), plain);
  }
}

TEST(FormulaText, SetsPowersOfTen) {
  EXPECT_EQ(formula_html("3.683e08"), "3.683·10<sup>8</sup>");
  EXPECT_EQ(formula_html("± 1e−09"), "± 10<sup>−9</sup>");
  EXPECT_EQ(formula_html("index 2.2e-16 and 1"), "index 2.2·10<sup>−16</sup> and 1");
  EXPECT_EQ(formula_html("(0.1 ± 1.3)e−15"), "(0.1 ± 1.3)·10<sup>−15</sup>");
  EXPECT_EQ(formula_html("2·10^−7"), "2·10<sup>−7</sup>");
}

TEST(FormulaText, LeavesNamesAlone) {
  for (const char* plain :
       {"", "d", "d_", "kq_svd", "k_svd", "ad_k", "_d_k", "d_k_x", "66b77e1", "layer_norm", "a^",
        "x^(2", "beta = 2", "rho 1", "sqrt_dim", "12e45f"}) {
    EXPECT_EQ(formula_html(plain), plain);
  }
}

}  // namespace
}  // namespace headlab::tools
