// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const std::vector<const Target*> targets = {
    &reader::csv,         &reader::formula, &reader::head_file,    &reader::manifest,
    &reader::measures,    &reader::model,   &reader::model_config, &reader::npy,
    &reader::npz,         &reader::results, &reader::safetensors,  &reader::scenario,
    &reader::shard_index, &reader::summary, &reader::table};

}  // namespace headlab::fuzz
