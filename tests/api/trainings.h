// Plans and trainings of the public interface for tests, which end where one cannot be had.
#pragma once

#include <shardscope/shardscope.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace shard::test {

/// What is asked for; an exception, which fails the test, says why not.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

inline shardscope::Options with(shardscope::Options words, const shardscope::Options& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline shardscope::Plan plan_of(const shardscope::Options& options, const std::string& model = "gpt2-nano") {
  return must(shardscope::compile(must(shardscope::Model::open(model)), options));
}

inline shardscope::Training start(const shardscope::Plan& plan) {
  return must(shardscope::Training::start(plan));
}

inline std::string state_of(shardscope::Training& training) {
  return must(training.state_sha256());
}

}  // namespace shard::test
