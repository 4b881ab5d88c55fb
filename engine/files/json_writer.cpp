// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_writer.h"

#include <utility>

#include "engine/files/json_syntax.h"

namespace headlab {
namespace {

constexpr std::size_t buffer_size = 1 << 16;

}  // namespace

JsonWriter::JsonWriter(TextSink sink, const JsonLayout& layout)
    : sink_(std::move(sink)), layout_(layout) {
  if (layout.sum) sum_.emplace();
}

void JsonWriter::finish() {
  text_ += '\n';
  hand_over();
}

void JsonWriter::hand_over() {
  if (sum_) sum_->add(text_);
  sink_(text_);
  text_.clear();
}

void JsonWriter::key(std::string_view name) {
  separate();
  text_ += json_string(name, layout_.ascii);
  text_ += members_.size() > layout_.lines ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::number(double value) {
  element(json_number(value));
}

void JsonWriter::string(std::string_view text) {
  element(json_string(text, layout_.ascii));
}

void JsonWriter::value(const Value& value) {
  if (const auto* array = std::get_if<Value::Array>(&value.data)) {
    begin_array();
    for (const Value& item : *array) this->value(item);
    end_array();
  } else if (const auto* members = std::get_if<Value::Members>(&value.data)) {
    begin_object();
    for (const Value::Entry& one : *members) {
      key(one.key);
      this->value(one.value);
    }
    end_object();
  } else if (const auto* text = std::get_if<std::string>(&value.data)) {
    string(*text);
  } else if (const auto* real = std::get_if<double>(&value.data)) {
    number(*real);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value.data)) {
    number(*whole);
  } else if (const auto* large = std::get_if<std::uint64_t>(&value.data)) {
    number(*large);
  } else if (const auto* truth = std::get_if<bool>(&value.data)) {
    boolean(*truth);
  } else {
    null();
  }
}

void JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
  members_.push_back(false);
}

void JsonWriter::end(char bracket) {
  if (sum_ && members_.size() == 1) {
    hand_over();
    const std::string digest = sum_->digest();
    sum_.reset();
    key(json_sum_key);
    string(digest);
  }
  const bool has_members = members_.back();
  const bool own_line = has_members && members_.size() <= layout_.lines;
  members_.pop_back();
  if (own_line) begin_line();
  text_ += bracket;
}

void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || members_.empty()) return;
  if (members_.back()) text_ += ',';
  members_.back() = true;
  if (text_.size() > buffer_size) hand_over();
  if (members_.size() <= layout_.lines) begin_line();
}

void JsonWriter::begin_line() {
  text_.append("\n").append(layout_.indent * members_.size(), ' ');
}

void JsonWriter::element(std::string_view text) {
  separate();
  text_ += text;
}

std::string to_json(const Value& value, const JsonLayout& layout) {
  std::string text;
  JsonWriter out([&](std::string_view part) { text += part; }, layout);
  out.value(value);
  out.finish();
  text.pop_back();  // the newline
  return text;
}

}  // namespace headlab
