// What the fuzz targets share. A target is one file that defines LLVMFuzzerTestOneInput: a parser
// is handed bytes, must end, and whatever it answers must hold together. With clang and
// TIDEPOOL_FUZZ it is linked with libFuzzer; otherwise replay_main.cc runs it over its corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tidepool {

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the run as a finding.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace tidepool
