// Variables and parameters: what ".global .align 4 .b8 x[4] = {...}" and ".param .u64 p" declare.
// Internal to the parser. Functions that return bool leave the error in the lexer.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"
#include "ptx/lexer.h"

namespace tidepool::ptx {

// What one text may make the parser allocate beyond its own size. No real module comes near.
struct Limits {
  uint64_t registers = 0;                            // still to be declared
  uint64_t initializer_bytes = uint64_t{256} << 20;  // still to be laid out
};

struct Linkage {
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;
};

// From after the state space to the ';', which is consumed: one or several variables of `space`,
// added to `out`. `managed`: .attribute(.managed) came before the space.
bool ParseVariables(Lexer& lexer, Space space, const Linkage& linkage, bool managed, Limits& limits,
                    std::vector<Variable>* out);

// "( .param ..., .reg ... )". Offsets are laid out in order; register parameters get none and no
// register (the caller declares it).
bool ParseParams(Lexer& lexer, std::vector<Param>* params);

// ".attribute(.managed, .unified(1, 2))" after its first word.
bool ParseAttributes(Lexer& lexer, bool* managed);

// The first byte after the last parameter.
uint64_t ParamBytes(const std::vector<Param>& params);

}  // namespace tidepool::ptx
