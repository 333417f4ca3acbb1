#pragma once
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace rieszflow::catalogue {

/// The config of `rieszflow verify`: which claims are tried, and how hard. Everything has a default.
const config::Schema& verify();

/// Every name that `only` can hold.
std::vector<std::string> claim_names();

/// A config that tries one claim, or all when `claim` is empty.
std::string verify_sample(const std::string& claim);

}  // namespace rieszflow::catalogue
