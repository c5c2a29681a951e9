// The names that are visible at a point of a function: nested "{ }" blocks, each with its
// registers, variables, labels and lists; an inner name hides an outer one. Internal to the parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace tidepool::ptx {

struct Symbol {
  enum class Kind : uint8_t {
    kNone,
    kRegister,        // `index` into Function::registers
    kVectorRegister,  // `count` registers from `index`
    kLocal,           // Function::locals
    kParam,           // Function::params
    kReturn,          // Function::returns
  };
  Kind kind = Kind::kNone;
  uint8_t count = 1;
  uint32_t index = 0;
};

// Label and range names are views into the PTX text, which must outlive this.
class Scopes {
 public:
  Scopes() { Open(); }

  void Open();
  void Close() { current_ = scopes_[current_].parent; }
  // The block that is open now; labels are looked up from it later, when all of them are known.
  uint32_t current() const { return current_; }
  bool outermost() const { return current_ == 0; }

  // False: the name is already declared in this block.
  bool Declare(std::string_view name, Symbol symbol);
  // The registers prefix0, prefix1, ... prefix<count-1>, the first of which has index `first`.
  bool DeclareRange(std::string_view prefix, uint32_t first, uint32_t count);
  Symbol Find(std::string_view name) const;

  // Labels, and with them the lists and prototypes that a label introduces: their own name space.
  bool DeclareLabel(std::string_view name, uint32_t value);
  std::optional<uint32_t> FindLabel(std::string_view name, uint32_t scope) const;

 private:
  struct Range {
    std::optional<uint32_t> IndexOf(std::string_view name) const;
    std::string_view prefix;
    uint32_t first;
    uint32_t count;
  };
  struct Scope {
    uint32_t parent;
    std::vector<Range> ranges;
    // Copies: variables are declared by the names in the tree, whose strings move as it grows.
    absl::flat_hash_map<std::string, Symbol> symbols;
    absl::flat_hash_map<absl::string_view, uint32_t> labels;
  };
  std::vector<Scope> scopes_;  // never shrinks: closed blocks keep their labels
  uint32_t current_ = 0;
};

}  // namespace tidepool::ptx
