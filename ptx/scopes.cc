#include "ptx/scopes.h"

#include <charconv>

namespace tidepool::ptx {
namespace {

// Abseil hashes its own string_view only.
absl::string_view Key(std::string_view name) { return {name.data(), name.size()}; }

}  // namespace

std::optional<uint32_t> Scopes::Range::IndexOf(std::string_view name) const {
  if (name.size() <= prefix.size() || !name.starts_with(prefix)) return std::nullopt;
  const char* digits = name.data() + prefix.size();
  const char* end = name.data() + name.size();
  // "%r<8>" declares %r7, not %r07.
  if (*digits == '0' && end - digits > 1) return std::nullopt;
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(digits, end, number);
  if (error != std::errc() || stop != end || number >= count) return std::nullopt;
  return first + number;
}

void Scopes::Open() {
  scopes_.push_back(Scope{current_, {}, {}, {}});
  current_ = static_cast<uint32_t>(scopes_.size() - 1);
}

bool Scopes::Declare(std::string_view name, Symbol symbol) {
  return scopes_[current_].symbols.emplace(std::string(name), symbol).second;
}

bool Scopes::DeclareRange(std::string_view prefix, uint32_t first, uint32_t count) {
  for (const Range& range : scopes_[current_].ranges) {
    if (range.prefix == prefix) return false;
  }
  scopes_[current_].ranges.push_back({prefix, first, count});
  return true;
}

Symbol Scopes::Find(std::string_view name) const {
  for (uint32_t at = current_;; at = scopes_[at].parent) {
    const Scope& scope = scopes_[at];
    for (const Range& range : scope.ranges) {
      if (const std::optional<uint32_t> index = range.IndexOf(name)) {
        return {Symbol::Kind::kRegister, 1, *index};
      }
    }
    if (!scope.symbols.empty()) {
      const auto found = scope.symbols.find(Key(name));
      if (found != scope.symbols.end()) return found->second;
    }
    if (at == 0) return {};
  }
}

bool Scopes::DeclareLabel(std::string_view name, uint32_t value) {
  return scopes_[current_].labels.emplace(Key(name), value).second;
}

std::optional<uint32_t> Scopes::FindLabel(std::string_view name, uint32_t scope) const {
  for (;; scope = scopes_[scope].parent) {
    const auto found = scopes_[scope].labels.find(Key(name));
    if (found != scopes_[scope].labels.end()) return found->second;
    if (scope == 0) return std::nullopt;
  }
}

}  // namespace tidepool::ptx
