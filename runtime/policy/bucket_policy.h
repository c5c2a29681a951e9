// Selection without scanning: candidates stand in buckets by the logarithm of what dropping them
// costs per byte, within a bucket by last access. The stalest of a bucket is its best candidate but
// for the bucket's width, so only bucket heads are compared, by their exact score: the chosen score
// is at most 2^(1/4) times the smallest.
//
// The neighbourhood cost of dtr-eq changes under a candidate's feet; its bucket is corrected when
// it comes to the head, so that an eviction costs O(buckets) and amortised O(1) moves.
#pragma once

#include <memory>

#include "runtime/policy/policy.h"

namespace tidepool::policy {

enum class Score { kDtrEq, kDtrLocal, kLru, kSize, kMsps, kRandom };

std::unique_ptr<Policy> MakeBucketPolicy(std::string_view name, Score score, uint64_t seed);

}  // namespace tidepool::policy
