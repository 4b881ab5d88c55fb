// SPDX-License-Identifier: Apache-2.0
/// \file One condition of a study of depth: tokens, heads and layers of a scenario, as given.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/files/document.h"
#include "engine/scenario/file_laws.h"
#include "engine/scenario/stack/stack_laws.h"

namespace headlab {

struct Plan;
struct LawDescription;

struct StackSetting {
  std::uint64_t n = 1;  ///< tokens
  TokenDesign design;
  bool fixed_design = false;
  std::uint64_t design_seed = 0;

  int heads = 1;                 ///< H
  std::optional<int> dim;        ///< d_k, of Gaussian and pruned maps
  std::optional<int> value_dim;  ///< d_v; default d_k
  AttentionLaw kernel;
  MapsLaw maps;
  bool averaged = false;
  bool alternating = false;

  int layers = 1;  ///< L
  double skip = 0;
  double branch = 1;
  NormLaw norm;
  double memory = 0;
  bool causal = false;
  MlpLaw mlp;
  bool shared_weights = false;
  bool spectra = false;

  std::uint64_t seed = 0;
  std::uint64_t replicates = 1;
};

/// The laws that studies of depth have besides design laws.
std::vector<LawDescription> describe_stack_laws();

/// True for a document with [tokens] or [layers]. Throws InvalidInput for one with tables of a
/// study of regression too.
bool is_study_of_depth(const Value& root);

/// Reads the condition that a document states. Throws InvalidInput with one line that says where,
/// which key, what is wrong and what is allowed.
StackSetting read_stack_setting(const Value& root, DataFiles& files);

/// What the plan of a setting takes, and to make it [bytes], 2^64 - 1 where it does not fit in 64
/// bits: tokens by their number, maps by the heads.
struct StackBytes {
  std::uint64_t tokens = 0;
  std::uint64_t maps = 0;
};
StackBytes stack_bytes(const StackSetting& setting);

/// Its plan, ready for a backend.
Plan make_stack_plan(const StackSetting& setting);

}  // namespace headlab
