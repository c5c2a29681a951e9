// Sizes, percentages and budgets as users write them.
#include "runtime/intercept/size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseSize, TakesBytesAndBinaryUnits) {
  EXPECT_EQ(ParseSize("0").value(), 0u);
  EXPECT_EQ(ParseSize("1").value(), 1u);
  EXPECT_EQ(ParseSize("123456789").value(), 123456789u);
  EXPECT_EQ(ParseSize("64KiB").value(), uint64_t{64} << 10);
  EXPECT_EQ(ParseSize("512MiB").value(), uint64_t{512} << 20);
  EXPECT_EQ(ParseSize("8GiB").value(), uint64_t{8} << 30);
}

TEST(ParseSize, GoesUpToTheLastByte) {
  EXPECT_EQ(ParseSize("18446744073709551615").value(), ~uint64_t{0});
  EXPECT_EQ(ParseSize("17179869183GiB").value(), uint64_t{17179869183u} << 30);
  EXPECT_FALSE(ParseSize("18446744073709551616").ok());
  EXPECT_FALSE(ParseSize("17179869184GiB").ok());
  EXPECT_FALSE(ParseSize("18014398509481984KiB").ok());
}

class BadSize : public ::testing::TestWithParam<const char*> {};
TEST_P(BadSize, IsRefusedAndNamed) {
  const absl::StatusOr<uint64_t> size = ParseSize(GetParam());
  ASSERT_FALSE(size.ok());
  EXPECT_THAT(std::string(size.status().message()),
              AllOf(HasSubstr(std::string("\"") + GetParam() + "\""), HasSubstr("8GiB")));
}
INSTANTIATE_TEST_SUITE_P(All, BadSize,
                         ::testing::Values("", " ", "GiB", "8GB", "8G", "8gib", "8 GiB", " 8GiB",
                                           "8GiB ", "-1", "+1", "1.5GiB", "0x10", "1e9", "8TiB",
                                           "8GiBGiB", "60%"));

TEST(ParsePercent, TakesWhatIsAboveNothingAndNotMoreThanAll) {
  EXPECT_DOUBLE_EQ(ParsePercent("60%").value(), 60);
  EXPECT_DOUBLE_EQ(ParsePercent("0.5%").value(), 0.5);
  EXPECT_DOUBLE_EQ(ParsePercent("100%").value(), 100);
  for (const char* text : {"0%", "0.0%", "100.1%", "-1%", "%", "60", "6 0%", "60%%", "1e1%", "nan%",
                           "inf%", "1.2.3%", ".%", ""}) {
    EXPECT_FALSE(ParsePercent(text).ok()) << text;
  }
}

TEST(ParseBudget, IsBytesOrAShareOfTheDevice) {
  EXPECT_EQ(ParseBudget("2MiB").value().Of(1), uint64_t{2} << 20);
  EXPECT_EQ(ParseBudget("25%").value().Of(uint64_t{80} << 30), uint64_t{20} << 30);
  EXPECT_EQ(ParseBudget("100%").value().Of(uint64_t{80} << 30), uint64_t{80} << 30);
}

TEST(ParseBudget, SaysWhatItAccepts) {
  EXPECT_THAT(std::string(ParseBudget("8GB").status().message()),
              AllOf(HasSubstr("\"8GB\""), HasSubstr("8GiB"), HasSubstr("N%")));
  EXPECT_FALSE(ParseBudget("0").ok());
  EXPECT_FALSE(ParseBudget("0GiB").ok());
  EXPECT_FALSE(ParseBudget("0%").ok());
  EXPECT_FALSE(ParseBudget("").ok());
}

TEST(FormatSize, IsForPeople) {
  EXPECT_EQ(FormatSize(0), "0 bytes");
  EXPECT_EQ(FormatSize(1023), "1023 bytes");
  EXPECT_EQ(FormatSize(1024), "1.0 KiB");
  EXPECT_EQ(FormatSize(uint64_t{3} << 19), "1.50 MiB");
  EXPECT_EQ(FormatSize(uint64_t{8} << 30), "8.00 GiB");
}

}  // namespace
}  // namespace tidepool
