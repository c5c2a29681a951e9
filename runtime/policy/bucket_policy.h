// Selection without scanning. The score of a candidate is w / staleness, where w (cost per byte)
// changes only with costs and neighbourhoods. Candidates stand in buckets by log2(w), a quarter of
// a doubling wide, and within a bucket by last access, so that the stalest of a bucket is its best
// but for the bucket's width, and only the heads of the buckets are compared.
//
// w of dtr-eq and msps changes under a candidate's feet. A rise is noticed when the candidate comes
// to the head: it moves then. A fall is noticed at once by direct neighbours, and otherwise once a
// class of dropped values costs less than 1/sqrt(2) of what it did. Hence the bound: the score of
// the chosen value, computed exactly, is at most kScoreBound times the smallest of all.
//
// SelectVictim costs O(occupied buckets) and amortised a few moves of O(log n); OnAccess O(log n);
// OnDrop, OnRebuild and Remove O(links of the value), and amortised over rebuilds of like cost
// O(links) for classes that fell. About 120 bytes per value.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/policy/policy.h"

namespace tidepool::policy {

// 2^(1/4) for the width of a bucket times sqrt(2) for costs that fell. The policies whose w never
// changes by itself stay within the first factor; "lru" is exact.
inline constexpr double kScoreBound = 1.6817928305074292;

enum class Score { kDtrEq, kDtrLocal, kLru, kSize, kMsps, kRandom };

std::unique_ptr<Policy> MakeBucketPolicy(std::string_view name, Score score, uint64_t seed);

}  // namespace tidepool::policy
