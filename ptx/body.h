// Function bodies. Internal to the parser.
#pragma once

#include "ptx/ast.h"
#include "ptx/declarations.h"
#include "ptx/lexer.h"

namespace tidepool::ptx {

// From the '{' of the body to its '}', both consumed; the function's parameters are there already.
// False with the error in the lexer.
bool ParseBody(Lexer& lexer, Limits& limits, Function* function);

}  // namespace tidepool::ptx
