// Parses PTX text. Accepts every construct of the PTX ISA's syntax that compilers emit, whatever
// the opcode: it is the reader of the tree that decides which opcodes it knows.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "ptx/ast.h"

namespace tidepool::ptx {

// `text` may end with NUL bytes (fat binaries do). Errors: InvalidArgument, with the line and what
// was expected. Thread-safe.
absl::StatusOr<Module> Parse(std::string_view text);

}  // namespace tidepool::ptx
