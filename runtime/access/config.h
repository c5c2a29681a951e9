// Annotations: what the program's author states of kernels that the PTX analysis cannot follow. The
// text is described in docs/config.md. Pure functions but for ReadConfig; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tidepool {

enum class Claim : uint8_t {
  kRead,    // only read
  kWrite,   // all of the buffer is written, whatever it held
  kUpdate,  // read, or written in part
  kIgnore,  // not an address that the kernel uses
};
const char* ClaimName(Claim claim);

struct ParameterClaim {
  bool by_offset = false;
  uint32_t number = 0;  // of the parameter from 0, or bytes into the parameter block
  Claim claim = Claim::kUpdate;
  std::string Text() const;  // "2=read", "+16=write"
};

struct Annotation {
  std::string pattern;  // of a name; * is any characters, ? is one
  std::vector<ParameterClaim> parameters;
  bool replayable = false;  // the same inputs give the same bits, by the stated parameters alone
  bool pin = false;         // every buffer that it is handed stays resident
  std::string where;        // "FILE:LINE", for messages

  // Whether it is about the kernel of this name, given as the driver knows it: the pattern is
  // compared with that, with the demangled name, and with that without types and parameters.
  bool Matches(const std::string& name) const;
};

// One line. Errors: InvalidArgument, "WHERE: what was found; accepted: ...".
absl::StatusOr<Annotation> ParseAnnotation(std::string_view line, std::string_view where);

// A text of lines, empty ones and comments included; `file` is for messages.
absl::StatusOr<std::vector<Annotation>> ParseConfig(std::string_view text, std::string_view file);

// The same from a file. Errors also: NotFound if it cannot be read, or is over 16 MiB.
absl::StatusOr<std::vector<Annotation>> ReadConfig(const std::string& path);

// Whether all of `text` matches `pattern`.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace tidepool
