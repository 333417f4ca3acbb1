// Every problem with an exact solution: grid, error, observed order, seconds.
//   bench_references [NAME...]     only the cases whose name begins with one of these
#include <fmt/format.h>

#include <string_view>

#include "tests/pde_references/cases.hpp"

int main(int count, char** arguments) {
  using namespace rieszflow::reference;
  fmt::print("{:<16} {:<62} {:>9} {:<9} {:>15} {:>9} {:>6} {:>9}\n", "reference", "model", "cells",
             "quantity", "computed", "error", "order", "seconds");
  int failures = 0;
  for (const Case& c : cases()) {
    bool wanted = count == 1;
    for (int k = 1; k < count; ++k) wanted = wanted || c.name.starts_with(std::string_view(arguments[k]));
    if (!wanted) continue;
    const Table table = solved(c);
    const Solution& finest = table.solutions.back();
    for (std::size_t q = 0; q < finest.quantities.size(); ++q) {
      const Quantity& quantity = finest.quantities[q];
      const bool first = q == 0;
      const double order = table.order(c, q);
      fmt::print("{:<16} {:<62} {:>9} {:<9} {:>15} {:>9.1e} {:>6} {:>9}\n", first ? c.name : "",
                 first ? c.model : "", first ? std::to_string(c.cells.back()) : "", quantity.name,
                 quantity.exact == 0.0 ? std::string("-") : fmt::format("{:.10f}", quantity.value),
                 quantity.error(),
                 quantity.error() < 1e-11 || order < 0.0 ? std::string("-") : fmt::format("{:.2f}", order),
                 first ? fmt::format("{:.3f}", finest.seconds) : std::string());
    }
    for (const Solution& solution : table.solutions) {
      if (!solution.completed) {
        fmt::print("{:<16} NOT COMPLETED\n", c.name);
        ++failures;
      }
    }
    std::fflush(stdout);
  }
  return failures == 0 ? 0 : 1;
}
