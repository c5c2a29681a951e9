#include "runtime/policy/policy.h"

#include "absl/strings/str_cat.h"
#include "runtime/policy/bucket_policy.h"

namespace tidepool::policy {
namespace {

struct Named {
  std::string_view name;
  Score score;
};

constexpr Named kPolicies[] = {{"dtr-eq", Score::kDtrEq}, {"dtr-local", Score::kDtrLocal},
                               {"lru", Score::kLru},      {"size", Score::kSize},
                               {"msps", Score::kMsps},    {"random", Score::kRandom}};

}  // namespace

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (const Named& named : kPolicies) names.push_back(named.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, uint64_t seed) {
  for (const Named& named : kPolicies) {
    if (named.name == name) return MakeBucketPolicy(named.name, named.score, seed);
  }
  std::string names;
  for (const Named& named : kPolicies) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(named.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown policy \"", std::string(name), "\"; accepted: ", names));
}

}  // namespace tidepool::policy
