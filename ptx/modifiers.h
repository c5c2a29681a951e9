// What the dotted words after an opcode mean: types, state spaces and vector widths. Internal to
// the parser. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "ptx/ast.h"

namespace tidepool::ptx {

struct Modifier {
  Type type = Type::kNone;        // kNone: not a type
  Space space = Space::kGeneric;  // kGeneric: not a state space
  uint8_t vector = 0;             // 2, 4, 8; 0: not a vector width
};

// `word` without its dot. A word that is none of the three gives an empty Modifier. Sub-spaces
// ("shared::cta", "param::entry") count as their space.
Modifier FindModifier(std::string_view word);

}  // namespace tidepool::ptx
