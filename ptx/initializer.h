// Lays out the initial bytes of a variable. Internal to the parser.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"
#include "ptx/lexer.h"

namespace tidepool::ptx {

// Reads what follows the '=' of `variable`, whose type is set. `lengths`: its array dimensions,
// outermost first, the width of a vector type last; an outermost 0 is an open length, which the
// initializer sets. Fills `size`, `init` and `relocations`; `budget` loses the bytes laid out.
// False with the error in the lexer.
bool ParseInitializer(Lexer& lexer, std::vector<uint64_t> lengths, uint64_t* budget,
                      Variable* variable);

// The product of `lengths` and `element_bytes`, or false if it is more than an address can reach.
bool ArrayBytes(const std::vector<uint64_t>& lengths, uint64_t element_bytes, uint64_t* bytes);

}  // namespace tidepool::ptx
