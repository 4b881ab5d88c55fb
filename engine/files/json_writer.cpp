// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_writer.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

using Json = nlohmann::json;

constexpr std::size_t buffer_size = 1 << 16;

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

JsonWriter::JsonWriter(TextSink sink, std::size_t lines) : sink_(std::move(sink)), lines_(lines) {}

void JsonWriter::finish() {
  text_ += '\n';
  sink_(text_);
  text_.clear();
}

void JsonWriter::key(std::string_view name) {
  separate();
  text_ += json_string(name);
  text_ += members_.size() > lines_ ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::number(double value) {
  element(Json(value).dump());
}

void JsonWriter::string(std::string_view text) {
  element(json_string(text));
}

void JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
  members_.push_back(false);
}

void JsonWriter::end(char bracket) {
  const bool has_members = members_.back();
  const bool own_line = has_members && members_.size() <= lines_;
  members_.pop_back();
  if (own_line) text_.append("\n").append(2 * members_.size(), ' ');
  text_ += bracket;
}

void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || members_.empty()) return;
  if (members_.back()) text_ += ',';
  members_.back() = true;
  if (text_.size() > buffer_size) {
    sink_(text_);
    text_.clear();
  }
  if (members_.size() <= lines_) text_.append("\n").append(2 * members_.size(), ' ');
}

void JsonWriter::element(std::string_view text) {
  separate();
  text_ += text;
}

}  // namespace headlab
